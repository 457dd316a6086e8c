"""Wrong, contradictory and hostile input of the command line: sentences, exit status 2, nothing half written."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cli import main, stored

TINY = ["--products", "4", "--periods", "3", "--categories", "2"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [f"p{i % 3},{i // 3},{1 + i % 7 / 10},{i % 9}" for i in range(60)]
    path.write_text("\n".join(["product,period,price,units", *rows]) + "\n")
    return path


def test_a_market_beyond_the_memory_is_refused_with_figures(tmp_path, capsys):
    out = tmp_path / "market.csv"
    huge = ["--products", "2000000", "--periods", "2000", "--stores", "10000"]
    assert main(["simulate", *huge, "--out", str(out)]) == 2
    assert "GB are free" in capsys.readouterr().err and not out.exists()


def test_numbers_that_are_none_are_refused_by_name(tmp_path, file, capsys):
    assert main(["simulate", *TINY, "--time-scale", "inf", "--out", str(tmp_path / "market.csv")]) == 2
    assert "time_scale=inf" in capsys.readouterr().err
    assert main(["fit", str(file), "--mass", "nan", "--out", str(tmp_path / "out")]) == 2
    assert "mass=nan" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("truth", ["market.csv", "truth.txt", "nowhere/truth.csv", "folder.csv"])
def test_no_market_is_written_where_its_truth_cannot_be(tmp_path, truth):
    (tmp_path / "folder.csv").mkdir()
    out = tmp_path / "market.csv"
    assert main(["simulate", *TINY, "--out", str(out), "--truth", str(tmp_path / truth)]) == 2
    assert not out.exists()


def test_a_failed_write_leaves_the_earlier_market_whole(tmp_path, monkeypatch, capsys):
    out = tmp_path / "market.csv"
    assert main(["simulate", *TINY, "--out", str(out)]) == 0
    before = out.read_bytes()

    def full(self, path, **more):
        path.write_text("product,cat")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    capsys.readouterr()
    assert main(["simulate", *TINY, "--seed", "9", "--out", str(out)]) == 2
    assert "No space left" in capsys.readouterr().err
    assert out.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["market.csv"]


def test_an_empty_machine_memory_is_a_sentence(tmp_path, monkeypatch, capsys):
    def starve(plan):
        raise MemoryError

    monkeypatch.setattr("core.cli.simulate.simulate", starve)
    assert main(["simulate", *TINY, "--out", str(tmp_path / "market.csv")]) == 2
    assert "memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "mine"], "--name"),
        (["--checkpoint-seconds", "5"], "--checkpoint-seconds"),
        (["--store", "--checkpoint-seconds", "nan"], "--checkpoint-seconds"),
        (["--store", "--checkpoint-seconds", "-1"], "--checkpoint-seconds"),
    ],
)
def test_options_of_the_store_that_cannot_hold_are_refused(tmp_path, file, capsys, monkeypatch, options, said):
    monkeypatch.setattr(stored, "manager", pytest.fail)
    assert main(["fit", str(file), "--out", str(tmp_path / "out"), *options]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_refused_before_the_fit(tmp_path, file, monkeypatch, capsys):
    monkeypatch.setattr("core.cli.fit.fit", pytest.fail)
    assert main(["fit", str(file), "--out", str(file / "sub" / "out")]) == 2
    assert "--out" in capsys.readouterr().err


def test_names_out_of_a_file_do_not_steer_the_terminal(tmp_path, capsys):
    path = tmp_path / "sales.parquet"
    names = pa.array(["\x1b[2J\x07a", "b\u202ec"] * 20)
    prices = pa.array([1.0, 1.1, 1.2, 1.3] * 9 + [-1.0] * 4)
    columns = {"product": names, "pri\x1bce": prices, "units": pa.array(range(40)), "period": pa.array([1] * 40)}
    pq.write_table(pa.table(columns), path)
    main(["check", str(path), "--map", "price=pri\x1bce"])
    said = capsys.readouterr()
    assert "price" in said.out and said.err
    assert not {"\x1b", "\x07", "\u202e"} & {*said.out, *said.err}


def test_text_that_is_no_utf8_in_a_parquet_file_is_read_with_signs_for_it(tmp_path):
    path, report = tmp_path / "sales.parquet", tmp_path / "report.json"
    columns = {"product": pa.array([b"\xff\xfe", b"ok"] * 20), "price": pa.array([1.0, 1.5, 2.0, 2.5] * 10)}
    pq.write_table(pa.table({**columns, "units": pa.array(range(40))}), path)
    assert main(["check", str(path), "--json", str(report)]) == 0
    assert {product["product"] for product in json.loads(report.read_text())["products"]} == {"\ufffd\ufffd", "ok"}


def test_a_report_that_cannot_be_written_leaves_the_earlier_one(tmp_path, file, monkeypatch):
    report = tmp_path / "report.json"
    assert main(["check", str(file), "--json", str(report)]) == 0
    before = report.read_bytes()

    def full(self, text, **more):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("pathlib.Path.write_text", full)
    assert main(["check", str(file), "--json", str(report)]) == 2
    assert report.read_bytes() == before


def test_a_folder_is_called_a_folder(tmp_path, capsys):
    assert main(["check", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["fit", "sales.csv"], ["simulate", *TINY], ["simulate", *TINY, "--out", "m.csv"]])
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_path_is_not_the_current_folder(tmp_path, file, monkeypatch, capsys, command, empty):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--truth" if "--out" in command else "--out", empty])
    assert ended.value.code == 2 and "an empty text names no place" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["sales.csv"]
