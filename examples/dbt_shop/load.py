"""The load that brings new rows: ``python load.py`` makes the raw tables of shop.duckdb, ``python load.py
orders customers`` writes one row to each of these, as a nightly load would."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import duckdb

DATABASE = "shop.duckdb"
ORDERS, EVENTS = 20_000, 50_000
MAKE = """
    CREATE SCHEMA raw;
    CREATE TABLE raw.orders AS SELECT range AS id, range * 7 % 1000 AS customer_id, range % 50 AS product_id,
        range % 97 + 1.5 AS amount, TIMESTAMP '2026-01-01' + to_minutes(range) AS ordered_at,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range({orders});
    CREATE TABLE raw.customers AS SELECT range AS id, ['de', 'fr', 'us'][1 + range % 3] AS country,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range(1000);
    CREATE TABLE raw.events AS SELECT range AS id, range * 13 % 1000 AS customer_id,
        ['view', 'buy'][1 + range % 2] AS kind, TIMESTAMP '2026-01-01' + to_minutes(range) AS happened_at,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range({events});
    CREATE TABLE raw.prices AS SELECT range AS product_id, range / 10 AS price,
        get_current_timestamp()::TIMESTAMPTZ AS loaded_at FROM range(50);
"""
WRITES = {
    "orders": "INSERT INTO raw.orders SELECT max(id) + 1, 1, 1, 9.5, now()::TIMESTAMP, now() FROM raw.orders",
    "customers": "INSERT INTO raw.customers SELECT max(id) + 1, 'de', now() FROM raw.customers",
    "events": "INSERT INTO raw.events SELECT max(id) + 1, 1, 'buy', now()::TIMESTAMP, now() FROM raw.events",
    "prices": "UPDATE raw.prices SET price = price * 1.01, loaded_at = now()",
}


def load(tables: Sequence[str], database: str = DATABASE) -> None:
    """Write one row to each of these raw tables; without any, make them all."""
    with duckdb.connect(database) as connection:
        if not tables:
            connection.execute(MAKE.format(orders=ORDERS, events=EVENTS))
        for table in tables:
            connection.execute(WRITES[table])


if __name__ == "__main__":
    load(sys.argv[1:])
    print("loaded: " + ", ".join(sys.argv[1:] or WRITES))
