"""Histories read from real repositories, made here with git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from afresh.histories.git import GitHistory, git_fields, read_git_history
from afresh.values.errors import InputError

DAY = 86400


class Repository:
    """A repository in which every commit has the day that the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, day: float = 0) -> None:
        stamp = f"@{int(day * DAY)} +0000"
        who = {f"GIT_{role}_{what}": "t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        alone = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.folder), "PATH": os.environ["PATH"]}
        subprocess.run(
            ["git", *arguments], cwd=self.folder, env=who | when | alone, check=True, capture_output=True
        )

    def commit(self, day: float, **files: str | None) -> None:
        """Write files (None removes; a double underscore in a name is a slash) and commit them."""
        for key, content in files.items():
            path = self.folder / key.replace("__", "/")
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x", day=day)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "r").mkdir()
    return Repository(tmp_path / "r")


def days(history: GitHistory) -> dict[str, list[float]]:
    """Days of the changes of each item."""
    return {
        name: (history.time[history.item == index] / DAY).tolist() for index, name in enumerate(history.items)
    }


def text(seed: int) -> str:
    return "".join(f"line {seed} {line}\n" for line in range(30))


def test_one_item_per_path_and_one_change_per_commit(repository: Repository) -> None:
    repository.commit(1, still="a", docs__page="a")
    repository.commit(2, docs__page="b")
    repository.commit(3, new="n")
    repository.commit(5, docs__page="c", new=None)
    found = read_git_history(repository.folder)
    assert days(found) == {"docs/page": [2, 5], "new": [3, 5], "still": []}
    assert (found.start, found.end, found.commits) == (1 * DAY, 5 * DAY, 3)
    assert np.all(np.diff(found.time) >= 0)


def test_a_branch_counts_once_when_it_lands(repository: Repository) -> None:
    repository.commit(1, a="a", b="b")
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.commit(2, a="1")
    repository.commit(3, a="2")
    repository.git("checkout", "--quiet", "main")
    repository.commit(4, b="1")
    repository.git("merge", "--quiet", "--no-ff", "-m", "land", "topic", day=6)
    assert days(read_git_history(repository.folder)) == {"a": [6], "b": [4]}


def test_the_window_leaves_out_what_came_before_and_after_but_keeps_what_existed(
    repository: Repository,
) -> None:
    repository.commit(1, early="a", gone="a", stays="a")
    repository.commit(2, early=None)
    repository.commit(4, gone=None)
    repository.commit(6, stays="b")
    repository.commit(9, late="a", stays="c")
    found = read_git_history(repository.folder, start=3 * DAY, end=8 * DAY)
    assert days(found) == {"gone": [4], "stays": [6]}
    assert (found.start, found.end, found.commits) == (3 * DAY, 8 * DAY, 2)


def test_a_window_from_before_the_first_commit_sees_the_files_appear(repository: Repository) -> None:
    repository.commit(2, a="a")
    assert days(read_git_history(repository.folder, start=0)) == {"a": [2]}


def test_a_commit_at_the_start_is_what_the_copies_hold_already(repository: Repository) -> None:
    repository.commit(1, a="a")
    repository.commit(2, a="b")
    repository.commit(3, a="c")
    assert days(read_git_history(repository.folder, start=2 * DAY)) == {"a": [3]}


def test_a_window_without_commits_still_has_items(repository: Repository) -> None:
    repository.commit(1, a="a")
    found = read_git_history(repository.folder, start=5 * DAY, end=6 * DAY)
    assert days(found) == {"a": []}
    assert found.commits == 0


def test_globs_choose_paths_and_mean_the_same_from_a_subfolder(repository: Repository) -> None:
    repository.commit(1, docs__a="a", docs__deep__b="b", docs__c_md="c", src__x="x")
    repository.commit(2, docs__a="1", docs__deep__b="1", src__x="1")
    assert days(read_git_history(repository.folder, paths=["docs/**"])) == {
        "docs/a": [2],
        "docs/c_md": [],
        "docs/deep/b": [2],
    }
    assert set(days(read_git_history(repository.folder, paths=["docs/*"]))) == {"docs/a", "docs/c_md"}
    assert set(days(read_git_history(repository.folder / "docs", paths=["src/*", "**/b"]))) == {
        "src/x",
        "docs/deep/b",
    }


def test_renames_are_followed_on_request(repository: Repository) -> None:
    repository.commit(1, old=text(1))
    repository.commit(2, old=text(1) + "more\n")
    repository.git("mv", "old", "new")
    repository.commit(3)
    repository.git("mv", "new", "newest")
    repository.commit(4, newest=text(1) + "more\nand more\n")
    assert days(read_git_history(repository.folder)) == {"old": [2, 3], "new": [3, 4], "newest": [4]}
    followed = read_git_history(repository.folder, follow_renames=True)
    assert days(followed) == {"newest": [2, 4]}  # moving alone is no change


def test_a_name_used_again_is_not_the_file_that_moved_away(repository: Repository) -> None:
    repository.commit(1, a=text(1))
    repository.commit(2, a=text(1) + "x\n")
    repository.git("mv", "a", "b")
    repository.commit(3)
    repository.commit(4, a=text(7))
    repository.commit(5, a=text(8))
    followed = read_git_history(repository.folder, follow_renames=True)
    assert days(followed) == {"a": [4, 5], "b": [2]}


def test_clocks_that_disagree_lose_nothing(repository: Repository) -> None:
    repository.commit(1, a="a")
    repository.commit(9, a="b")  # from the future
    repository.commit(3, a="c")
    repository.commit(5, a="d")
    assert days(read_git_history(repository.folder)) == {"a": [3, 5, 5]}


def test_a_commit_dated_before_its_window_comes_just_after_the_start(repository: Repository) -> None:
    repository.commit(2, a="a")
    repository.commit(1, a="b")  # its clock is slow
    repository.commit(4, a="c")
    found = read_git_history(repository.folder)
    assert (found.time - found.start).tolist() == [1, 2 * DAY]


def test_odd_names_survive(repository: Repository) -> None:
    names = ["white space", "ümlaut", 'quo"te', "new\nline", "M"]
    for name in names:
        (repository.folder / name).write_text("a")
    (repository.folder / "x").write_text("a")
    repository.commit(1)
    for name in names:
        (repository.folder / name).write_text("b")
    repository.commit(2)
    assert days(read_git_history(repository.folder)) == {"x": []} | {name: [2] for name in names}


def test_a_users_settings_do_not_change_the_answer(repository: Repository) -> None:
    repository.commit(1, a=text(1))
    repository.git("mv", "a", "b")
    repository.commit(2)
    for setting in ("diff.renames=copies", "log.showRoot=false", "log.diffMerges=off", "color.ui=always"):
        repository.git("config", *setting.split("="))
    assert days(read_git_history(repository.folder, start=0)) == {"a": [1, 2], "b": [2]}


def test_progress_is_told(repository: Repository) -> None:
    repository.commit(1, a="a")
    repository.commit(2, a="b")
    heard: list[float] = []
    read_git_history(repository.folder, on_read=heard.append)
    assert heard == [0.0]


def test_what_is_no_history_is_refused_in_words(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: is no folder"):
        read_git_history(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a git repository"):
        read_git_history(tmp_path)
    with pytest.raises(InputError, match="does not have any commits yet"):
        read_git_history(repository.folder)
    repository.commit(3, a="a")
    with pytest.raises(InputError, match="the window is empty: it starts at 259200 and ends at 259200"):
        read_git_history(repository.folder)
    with pytest.raises(InputError, match="no commit before the end of the window"):
        read_git_history(repository.folder, start=0, end=DAY)


def test_a_reader_that_stops_early_ends_git(repository: Repository) -> None:
    # Far more than a pipe holds: a git that is not ended would wait for ever to write, and we for it.
    repository.commit(1, **{f"{'long' * 40}{number}": "a" for number in range(2000)})
    fields = git_fields(repository.folder, ["log", "-z", "--name-status", "--format=%ct"])
    assert next(fields) == b"86400"
    fields.close()


def test_without_git_it_says_so(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="'git' is not installed"):
        read_git_history(repository.folder)
