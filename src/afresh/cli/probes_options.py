"""The options of ``afresh probes``."""

from __future__ import annotations

from typing import Annotated

import typer

Relation = Annotated[
    str,
    typer.Argument(
        metavar="RELATION",
        help="Local records: CSV, Parquet or JSONL, also .gz or .zst; or a table: FILE.db#TABLE of SQLite, "
        "postgresql://…#TABLE.",
    ),
]
KeyColumn = Annotated[str, typer.Option(metavar="COLUMN", help="The column that identifies a record.")]
KeywordColumns = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN[:SEP]",
        help="A column of keywords: words, or with :SEP whole values split by SEP. May repeat.",
    ),
]
ServerPlace = Annotated[
    str,
    typer.Option(
        metavar="FILE|URL",
        help="The server's records, with the same columns, to ask; or where to ask: a web address with "
        "{query} and {page}, sqlite:PATH, postgresql://…",
    ),
]
PageSize = Annotated[int, typer.Option(min=1, metavar="N", help="Results on a page.")]
TopK = Annotated[
    int | None, typer.Option(min=1, metavar="K", help="Most results that the server gives for a query.")
]
AnyAttribute = Annotated[
    bool, typer.Option("--any-attribute", help="The server finds a keyword in any of the columns.")
]
Method = Annotated[
    str,
    typer.Option(
        metavar="auto|1|2", help="auto: fewest requests. The paper's greedy: 1 reads all pages, 2 the first."
    ),
]
Pool = Annotated[
    int, typer.Option(min=1, metavar="K", help="Frequent keywords the paper's greedy chooses from.")
]
Quota = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop after N requests (methods 1, 2: queries).")
]
UntilCovered = Annotated[
    bool, typer.Option("--until-covered", help="Ask until every record is covered (the default).")
]
ProxyFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Records like the server's: totals are then estimated from them."),
]
WeightColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Importance of each record; 1 if not given.")
]
RateColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Changes per time of each record, with --elapsed.")
]
ElapsedColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Time since each record was refreshed.")
]
LookUp = Annotated[str, typer.Option(metavar="URL", help="Live: the address of one record, with {key}.")]
TotalPath = Annotated[str, typer.Option(metavar="PATH", help="Live: where the total is, in JSON.")]
RowsPath = Annotated[str, typer.Option(metavar="PATH", help="Live: where the results are.")]
KeyPath = Annotated[str, typer.Option(metavar="PATH", help="Live: where the key is in a result.")]
FirstPage = Annotated[int, typer.Option(min=0, metavar="N", help="Live: the number of page one.")]
Term = Annotated[
    str, typer.Option(metavar="TEXT", help="Live: how a keyword is written, of {attribute} and {text}.")
]
Table = Annotated[str, typer.Option(metavar="NAME", help="Live: the table to search in a database.")]
Delay = Annotated[str, typer.Option(metavar="TIME", help="Live: least time between requests.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Live: allow private and loopback addresses.")
]
