"""``afresh estimate`` of a dataset: polls are partitioned by item, and each bucket is estimated alone."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.cli.planning.datasets.duckdb_session import partition_rows
from afresh.cli.planning.datasets.executor import PartExecutor, open_executor, path_for
from afresh.cli.planning.datasets.output_folder import WORK, OutputFolder, digest_of
from afresh.cli.planning.datasets.plan_dataset import run_step
from afresh.cli.planning.datasets.poll_parts import (
    Bucket,
    BucketRates,
    RateSums,
    estimate_bucket,
    survey_bucket,
    totals_of_bucket,
)
from afresh.cli.planning.datasets.poll_shuffle import (
    SCHEMA,
    ShuffledPart,
    ShuffleJob,
    as_arrow,
    bucket_of,
    checked_polls,
    shuffle_part,
)
from afresh.cli.planning.poll_log_rates import HOUR_S, choose_estimator, start_of_week
from afresh.cli.progress import ProgressBar
from afresh.cli.summary import format_number, print_json, print_summary
from afresh.rates.common_belief import CommonBelief, PollTotals, learn_common
from afresh.rates.item_sample import SAMPLED, join_samples
from afresh.rates.season import Season
from afresh.tables.dataset import DatasetPart, find_parts
from afresh.tables.object_paths import is_address
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_NAMES, unit_seconds
from afresh.version import __version__

if TYPE_CHECKING:
    from afresh.cli.planning.estimate_command import EstimateOptions

_BUCKET_BYTES = 8 << 20  # of input for each bucket; its polls take some 50 times as much memory
_MOST_BUCKETS = 1024
_BUCKET = "bucket"


def estimate_dataset(polls: str, options: EstimateOptions) -> None:
    """Estimate the rates of a dataset of polls, write a file per bucket to ``-o``, and print a summary."""
    _refuse_options(options)
    parts = find_parts(path_for(options.on, polls))
    if options.output is None:
        raise UsageError("the rates of a dataset are written to a folder: give -o rates/")
    folder = OutputFolder(path_for(options.on, options.output))
    if options.on == "duckdb" and is_address(folder.path):
        raise UsageError(
            "--on duckdb partitions polls in a local folder: give -o a local one, or use --on local"
        )
    size = sum(part.size for part in parts)
    buckets = min(max(1, -(-size // _BUCKET_BYTES)), _MOST_BUCKETS)
    key = _key(parts, options, buckets)
    saved = folder.begin(key)
    names = [f"part-{number:04}{_ending(parts[0].name)}" for number in range(buckets)]
    with open_executor(options.on or "local") as executor:
        if saved is None or "sums" not in saved:
            done = {} if saved is None else saved.get("done", {})
            saved = _Estimate(executor, parts, options, folder, names, key).run(done)
    _print(saved, options, len(names))


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An estimate of the polls of ``parts``, whose buckets become the files ``names`` of ``folder``."""

    executor: PartExecutor
    parts: Sequence[DatasetPart]
    options: EstimateOptions
    folder: OutputFolder
    names: list[str]
    key: str

    def run(self, done: dict[str, Any]) -> dict[str, Any]:
        """Write the rates of all buckets but those that are ``done`` (the sums of each, by its file). Return
        what the summary says, which is saved in the folder too."""
        written = self.folder.written()
        done = {name: sums for name, sums in done.items() if name in written}
        self.folder.save(self.key, self.names, {"done": done})
        buckets = _partition(self.executor, self.parts, self.options, self.folder, len(self.names))
        common = _learn(self.executor, buckets, self.options)
        self._write(buckets, common, done)
        self.folder.check_written(self.names)
        regime, sums = common.regime, sum((RateSums(**each) for each in done.values()), start=RateSums())
        saved = {
            "sums": asdict(sums),
            "method": common.estimator.name,
            "drift": None if math.isinf(regime.horizon) else regime.horizon,
            "season": regime.season.strength if regime.season.is_supported else None,
        }
        self.folder.save(self.key, self.names, saved)
        self.folder.remove_work()
        return saved

    def _write(self, buckets: Sequence[Bucket], common: CommonBelief, done: dict[str, Any]) -> None:
        """Write the buckets that are not in ``done``, and add them there."""
        left = [bucket for bucket in buckets if self.names[bucket.number] not in done]
        folder, level = self.folder, self.options.level
        jobs = [BucketRates(each, folder.target(self.names[each.number]), common, level) for each in left]
        with ProgressBar(f"estimating, {len(jobs)} parts", len(jobs)) as progress:
            results = self.executor.run(estimate_bucket, jobs)
            for bucket, sums in zip(left, results, strict=True):
                done[self.names[bucket.number]] = asdict(sums)
                folder.save(self.key, self.names, {"done": done})
                progress.reach(len(done))


def _partition(
    executor: PartExecutor,
    parts: Sequence[DatasetPart],
    options: EstimateOptions,
    folder: OutputFolder,
    buckets: int,
) -> list[Bucket]:
    """Partition the polls into buckets by item, and return these."""
    now_s, unit_s = SystemClock().now_s(), unit_seconds(options.unit)
    if options.on == "duckdb":
        return _partition_by_duckdb(parts, Path(folder.path) / WORK, buckets, now_s, unit_s)
    jobs = [
        ShuffleJob(part, folder.target(f"{WORK}/polls-{number:05}"), buckets, now_s)
        for number, part in enumerate(parts)
    ]
    shuffled = run_step(executor, "partitioning by item", shuffle_part, jobs)
    files = tuple(file for each in shuffled for file in each.files)
    given: frozenset[str] = frozenset().union(*(each.given for each in shuffled))
    start_s = _start(shuffled)
    return [Bucket(number, files, number, given, unit_s, start_s) for number in range(buckets)]


def _partition_by_duckdb(
    parts: Sequence[DatasetPart], work: Path, buckets: int, now_s: float, unit_s: float
) -> list[Bucket]:
    """Do the same with DuckDB, which writes to the disk what does not fit into memory."""
    import pyarrow as pa

    seen: list[ShuffledPart] = []

    def batches() -> Iterator[Any]:
        for part in parts:
            for batch in checked_polls(part, now_s):
                table = as_arrow(batch)
                first_s = float(np.min(table["time"].to_numpy())) if table.num_rows else math.inf
                seen.append(ShuffledPart((), batch.given, table.num_rows, first_s))
                number = pa.array(bucket_of(table["item"], buckets), pa.int32())
                yield from table.append_column(_BUCKET, number).to_batches()

    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    place = work / "polls"
    partition_rows(batches(), SCHEMA.append(pa.field(_BUCKET, pa.int32())), place, _BUCKET)
    given: frozenset[str] = frozenset().union(*(each.given for each in seen))
    start_s = _start(seen)
    found = []
    for number in range(buckets):
        files = tuple(sorted(str(file) for file in (place / f"{_BUCKET}={number}").glob("*.parquet")))
        found.append(Bucket(number, files, None, given, unit_s, start_s))
    return found


def _start(parts: Sequence[ShuffledPart]) -> float:
    return start_of_week(min((part.first_s for part in parts), default=math.inf))


def _learn(executor: PartExecutor, buckets: Sequence[Bucket], options: EstimateOptions) -> CommonBelief:
    """Return what all items tell together, learned from the same sample as for a single file."""
    unit_s = unit_seconds(options.unit)
    # A bucket has about its share of the sample; three times as many are rarely too few.
    number = min(SAMPLED, 3 * SAMPLED // len(buckets) + 1000)
    surveys = run_step(executor, "reading polls", survey_bucket, [(bucket, number) for bucket in buckets])
    if any(survey.is_cut for survey in surveys):
        keys, _ = join_samples([(survey.keys, survey.polls) for survey in surveys])
        chosen = set(keys)
        full = [
            at
            for at, survey in enumerate(surveys)
            if survey.is_cut and survey.keys and survey.keys[-1] in chosen
        ]
        again = run_step(executor, "reading polls", survey_bucket, [(buckets[at], SAMPLED) for at in full])
        for at, survey in zip(full, again, strict=True):
            surveys[at] = survey
    _, sample = join_samples([(survey.keys, survey.polls) for survey in surveys])
    in_clock_time = sum((survey.totals for survey in surveys), start=PollTotals())
    del surveys

    def totals(season: Season) -> PollTotals:
        if not season.is_supported:
            return in_clock_time
        jobs = [(bucket, season) for bucket in buckets]
        return sum(run_step(executor, "reading times", totals_of_bucket, jobs), start=PollTotals())

    estimator, horizon = choose_estimator(options)
    return learn_common(
        sample,
        totals,
        estimator,
        hour=HOUR_S / unit_s,
        horizon=horizon,
        season=options.has_season,
        seeks_jumps=options.seeks_change_points,
    )


def _refuse_options(options: EstimateOptions) -> None:
    wrong = {
        "--group": options.group,
        "--views": options.views,
        "--interval": options.interval,
        "--marks": options.marks,
        "--check-poisson": options.check_poisson,
        "--plot": options.plot,
    }
    named = next((name for name, value in wrong.items() if value), None)
    if named is not None:
        raise UsageError(f"{named}: not with a dataset or --on; give a single file without --on")


def _ending(name: str) -> str:
    """Return the ending of the name of a file, such as ``.csv.gz``.

    >>> _ending("2026/polls.1.csv.gz"), _ending("a.parquet")
    ('.csv.gz', '.parquet')
    """
    *_, layout, last = ["", *name.rsplit("/", 1)[-1].split(".")][-2:] if "." in name else ["", ""]
    return f".{layout}.{last}" if last in ("gz", "zst") else f".{last}"


def _key(parts: Sequence[DatasetPart], options: EstimateOptions, buckets: int) -> str:
    chosen = asdict(options)
    for name in ("polls", "output", "as_json"):
        del chosen[name]
    return digest_of(
        {"afresh": __version__, "parts": [asdict(part) for part in parts], "options": chosen, "into": buckets}
    )


def _print(saved: dict[str, Any], options: EstimateOptions, parts: int) -> None:
    sums = RateSums(**saved["sums"])
    mean = sums.rates / sums.items if sums.items else 0.0
    summary = {name: getattr(sums, name) for name in ("items", "polls", "changes", "unchanged_items")}
    summary |= {"mean_rate": mean, "drift": saved["drift"], "season": saved["season"]}
    summary |= {name: getattr(sums, name) for name in ("change_points", "changed_sharply")}
    if options.as_json:
        print_json({**summary, "method": saved["method"], "unit": options.unit})
        return
    unit = UNIT_NAMES[options.unit]
    rows = [
        ("items", f"{sums.items:,}, {sums.unchanged_items:,} of them never seen to change"),
        ("polls", f"{sums.polls:,} intervals, {sums.changes:,} changes"),
        ("rate", f"{format_number(mean)} per {unit} on average" if sums.items else "no items"),
    ]
    if saved["drift"] is not None:
        over = f"{format_number(saved['drift'])} {unit}s"
        rows.append(("drift", f"rates change with time: old polls fade, to 1/e in {over}; rates are of now"))
    if saved["season"] is not None:
        rows.append(("season", "the hours of the week differ"))
    if sums.change_points:
        rows.append(("sharp changes", f"of {sums.changed_sharply:,} items, {sums.change_points:,} times"))
    rows.append(("parts", f"{parts:,}"))
    print_summary(f"rates by method {saved['method']}", rows)
