"""Add-ons for other programs that fetch data, so that they poll what afresh lends them."""
