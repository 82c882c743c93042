"""afresh together with mariadb."""
