"""The texts of contents: what a page or a PDF file says, without menus, advertisements and markup."""
