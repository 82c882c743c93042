-- name: take_numbers
UPDATE counter SET value = value + %(numbers)s WHERE name = %(name)s RETURNING value;
