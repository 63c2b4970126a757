"""Past tests are read from CSV files as people have them, or refused with line, column and remedy."""

import numpy as np
import pytest

import metabandit as mb
from metabandit.priors.history import read_history
from metabandit.sheets import read_sheet

LONG = "test,variant,sent,clicks\n1,A,1000,31\n1,B,1000,52\n2,A,900,18\n2,B,1100,40\n"
# The same history in other files: (problem, arm) -> (plays, successes).
EXPECTED = {("1", "A"): (1000, 31), ("1", "B"): (1000, 52), ("2", "A"): (900, 18), ("2", "B"): (1100, 40)}  # fmt: skip
WIDE = "week,A sent,A clicks,B sent,B clicks\n1,1000,31,1000,52\n2,900,18,1100,40\n"
SINGLE = "test,variant,clicked\n" + "".join(
    f"{test},{arm},{int(play < wins)}\n"
    for (test, arm), (plays, wins) in EXPECTED.items()
    for play in range(plays)
)
SAME = {
    "long": LONG,
    "byte-order mark and windows lines": "\ufeff" + LONG.replace("\n", "\r\n"),
    "semicolons": LONG.replace(",", ";"),
    "tabs": LONG.replace(",", "\t"),
    "quotes": '"test","variant","sent","clicks"\n"1","A","1,000","31"\n"1","B","1,000","52"\n'
    '"2","A","900","18"\n"2","B","1,100","40"\n',
    "thousands with points": "test;variant;sent;clicks;rate\n1;A;1.000;31;3,1 %\n1;B;1.000;52;5,2 %\n"
    "2;A;900;18;2 %\n2;B;1.100;40;3,6 %\n",
    "thousands with spaces": LONG.replace(",1000", ",1 000").replace(",1100", ",1\u00a0100"),
    "blank lines and columns": "\n\ntest,variant,sent,clicks,,\n1,A,1000,31,,\n,,,,,\n1,B,1000,52,,\n"
    "2,A,900,18,,\n2,B,1100,40,,\n\n",
    "other columns": "campaign_id,date,Version,Mails sent,Unique clicks,comment\n"
    "1,2024-01-03,A,1000,31,good\n1,2024-01-03,B,1000,52,\n2,2024-02-01,A,900,18,\n"
    "2,2024-02-01,B,1100,40,late\n",
    "rates with percent signs": "test,arm,impressions,CTR\n1,A,1000,3.1%\n1,B,1000,5.2 %\n2,A,900,2%\n"
    "2,B,1100,3.6364%\n",
    "decimal commas": "test;arm;visitors;rate\n1;A;1000;0,031\n1;B;1000;0,052\n2;A;900;0,02\n"
    "2;B;1100;0,036364\n",
    "rows per day": "test,variant,day,sent,clicks\n1,A,1,500,11\n1,A,2,500,20\n1,B,1,400,50\n"
    "1,B,2,600,2\n2,A,1,900,18\n2,B,1,1100,40\n",
    "arms without plays": LONG + "3,A,0,0\n",
    "wide": WIDE,
    "wide, other words": "id;sentA;conversionsA;sentB;conversionsB\n1;1000;31;1000;52\n2;900;18;1100;40\n",
    "wide, blank arms": WIDE.replace("B clicks", "B clicks,C sent,C clicks")
    .replace(",52", ",52,,")
    .replace(",40", ",40,,"),
    "one row per play": SINGLE,
    "rewards in words": SINGLE.replace(",1\n", ",yes\n").replace(",0\n", ",No\n"),
    "Excel's Unicode text": LONG.replace(",", "\t").encode("utf-16"),
    "Excel's separator line": "sep=;\n" + LONG.replace(",", ";"),
    "bars": LONG.replace(",", "|"),
    "a comment above": "# exported on Monday, by hand\n" + LONG,
    "a row of totals": LONG + "Total,all,4000,141\n",
    "totals of each test": LONG.replace("2,A", "1,Total,2000,83\n2,A") + "2,Total,2000,58\n",
    "a total without a test": LONG + ",Total:,4000,141\n",
    "a total without an arm": LONG + 'Grand total,,"4,000",141\n',
    "totals in other words": LONG.replace("2,A", "1,Subtotal,2000,83\n2,A")
    + "2,Subtotal,2000,58\nSumme,,4000,141\n",
    "carriage returns only": LONG.replace("\n", "\r"),
    "one arm called Variant": "week,A Visitors,A Orders,B Variant Visitors,B Variant Orders\n"
    "1,1000,31,1000,52\n2,900,18,1100,40\n",
}


def write(tmp_path, content, name="history.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_files_that_say_the_same_are_read_the_same(content, tmp_path):
    history = read_history(write(tmp_path, content))
    found = {
        (history.problems[int(p)], history.arms[int(a)].upper()): (plays, total)
        for p, a, plays, total in zip(
            history.problem, history.arm, history.plays, history.total, strict=True
        )
    }
    assert found == EXPECTED
    assert history.kind == "counts"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LONG + "Total,all,4000,140\n", "not the sum of the rows above"),
        (LONG.replace("2,A", "1,Both,2000,83\n2,A") + "2,Both,2000,58\n", "'Both' is the sum of the other rows"),
        ("test,arm,n,mean,sd\n1,A,9,2,1\n1,B,9,3,1\n1,Total,18,2.5,1\n", "means cannot be added"),
    ],
)  # fmt: skip
def test_totals_are_never_counted_as_arms(content, message, tmp_path):
    with pytest.raises(mb.InputError, match=message):
        read_history(write(tmp_path, content))


def test_columns_by_name_are_read_like_a_file(tmp_path):
    columns = {"test": [1, 1, 2, 2], "sent": np.array([1000, 1000, 900, 1100]), "clicks": [31, 52, 18, 40]}  # fmt: skip
    history = read_history(columns)
    assert history.total.tolist() == [31, 52, 18, 40]
    assert history.arms == ("1", "2"), "arms without names are numbered in their test"
    with pytest.raises(mb.InputError, match="one length"):
        read_history({"sent": [1], "clicks": [1, 2]})
    with pytest.raises(mb.InputError, match="CSV file, or columns"):
        read_history(3)


def test_an_arm_is_called_variant_if_its_columns_are(tmp_path):
    content = "Test;Control Visitors;Control Orders;Variant Visitors;Variant Orders\nx;9;3;9;5\n"
    assert read_history(write(tmp_path, content)).arms == ("control", "variant")


def test_frames_that_are_no_mapping_are_read_by_their_columns():
    class Frame:  # as of polars
        columns = ("test", "sent", "clicks")

        def __getitem__(self, name):
            return {"test": [1, 1], "sent": [10, 20], "clicks": [1, 2]}[name]

    assert read_history(Frame()).plays.tolist() == [10, 20]


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path, "Brief;Fassung;Stück;Antworten\n1;A;1000;31\n1;B;1000;52\n")
    roles = {"problem": "Brief", "arm": "Fassung", "plays": "Stück", "successes": "Antworten"}
    assert read_history(path, roles).total.tolist() == [31, 52]
    with pytest.raises(mb.InputError, match="has no column 'Post' for plays; it has: Brief"):
        read_history(path, roles | {"plays": "Post"})
    with pytest.raises(mb.InputError, match="no parameter 'rewards'"):
        read_history(path, {"rewards": "Brief"})


def test_means_with_their_errors(tmp_path):
    by_error = read_history(write(tmp_path, "test,arm,n,mean,se\n1,A,100,2.5,0.2\n1,B,400,3,0.1\n"))
    by_sd = read_history(
        write(tmp_path, "test,arm,n,mean,sd\n1,A,100,2.5,2\n1,B,400,3,2\n", "b.csv")
    )
    for history in (by_error, by_sd):
        assert history.kind == "means"
        assert history.mean.tolist() == [2.5, 3.0]
        assert np.allclose(history.error, [0.2, 0.1])


def test_single_rewards_have_one_noise(tmp_path):
    rng = np.random.default_rng(1)
    rewards = {arm: rng.normal(mean, 2.0, 60) for arm, mean in (("A", 1.0), ("B", 2.0))}
    rows = [f"x,{arm},{value!r}" for arm, each in rewards.items() for value in each.tolist()]
    history = read_history(write(tmp_path, "test,arm,revenue\n" + "\n".join(rows)))
    assert np.allclose(history.mean, [each.mean() for each in rewards.values()])
    pooled = np.mean([each.var(ddof=1) for each in rewards.values()])
    assert np.allclose(history.error**2 * history.plays, pooled)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["titles in its first line"]),
        ("1,A,1000,31\n", ["titles in its first line"]),
        ("test,variant,sent,clicks\n", ["rows below"]),
        (LONG + "3,A,1000\n", ["line 6", "3 cells", "4"]),
        (LONG + "3,A,,31\n", ["line 6, column 3 (sent)", "empty", "plays"]),
        (LONG + "3,A,many,31\n", ["line 6, column 3 (sent)", "'many'", "not a number"]),
        (LONG + "3,A,1000,31.5\n", ["line 6, column 4 (clicks)", "'31.5'", "whole number"]),
        (LONG + "3,A,1000,-1\n", ["line 6, column 4 (clicks)", "'-1'", "whole number"]),
        (LONG + "3,A,10,31\n", ["line 6, column 4", "31 successes of 10 plays", "--columns plays="]),
        (LONG + ",A,1000,31\n", ["line 6, column 1 (test)", "empty", "test"]),
        (LONG + "3,n/a,1000,31\n", ["line 6, column 2 (variant)", "empty ('n/a')"]),
        ("test,variant,sent\n1,A,5\n", ["plays and successes", "test, variant, sent", "--columns"]),
        ("test,variant,rate\n1,A,0.05\n", ["plays behind each mean", "noise"]),
        ("test,variant,mean,se\n1,A,2,0.1\n", ["plays", "noise of a single reward"]),
        ("variant,sent,clicks\nA,9,1\nA,9,2\n", ["several rows per arm", "--columns problem="]),
        ("test,clicked\n1,0\n1,1\n", ["which arm a reward is of", "--columns arm="]),
        ("test,arm,sent,shown,clicks\n1,A,9,8,1\n", ["'sent' and 'shown'", "--columns plays=sent"]),
        ("test,arm,visits,rate\n1,A,100,5\n", ["line 2, column 4 (rate)", "percent sign"]),
        ("week,A sent,A clicks,B sent,B clicks,C sent\n1,9,1,9,1,9\n", ["column 6 (C sent)", "successes"]),
        (WIDE.replace("31", ""), ["line 2, column 3 (A clicks)", "empty"]),
        ("test;arm;sent;clicks\n1;A;1.250;31\n1;B;1.250;29\n", ["line 2, column 3", "'1.250'", "thousands"]),
        ("test;arm;sent;rate\n1;A;900;0,05\n1;B;900;0.05\n1;C;900;0.04\n", ["line 2, column 4", "'0,05'", "decimal points"]),
        ("test,arm,n,mean,se\n1,A,9,2,0\n", ["line 2, column 5", "greater than 0"]),
        ("test,arm,n,mean,se\n1,A,9,2,1\n1,A,9,2,1\n", ["line 3", "given twice"]),
        ("test,arm,reward\n1,A,2.5\n1,B,3\n", ["one reward per arm"]),
        ('test,arm,sent,clicks\n1,A,"9,1\n', ["history.csv"]),
        ("Report of the year\n\n" + LONG, ["line 1", "heading", "remove"]),
        ("Report of the year,,,\n" + LONG, ["line 1", "heading", "remove"]),
        (LONG + f"3,A,1{'0' * 400},1\n", ["line 6, column 3 (sent)", "not a number"]),
        (LONG.encode() + b"3,\xfc,1,1\n", ["cannot be read as text", "save it as UTF-8"]),
        (b"PK\x03\x04" + bytes(range(99)), ["spreadsheet", "export it as a CSV file"]),
    ],
)  # fmt: skip
def test_bad_files_say_where_and_what_to_do(content, words, tmp_path):
    with pytest.raises(mb.InputError) as caught:
        read_history(write(tmp_path, content))
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "content",
    [
        "test;A;B\nspring;0,04;0,05\nautumn;0,06;0,045\n",
        ",A,B\n0,0.04,0.05\n1,0.06,0.045\n",
        "date,A,B,\n2024-01-01,4%,5 %,\n\n2024-01-02,6%,4.5%,\n",
        "id\tA\tB\n17\t4,0 %\t5,0 %\n23\t6,0 %\t4,5 %\n",
    ],
)
def test_tables_have_id_columns_percent_signs_and_decimal_commas(content, tmp_path):
    table = mb.Table(write(tmp_path, content))
    assert np.allclose(table.means, [[0.04, 0.05], [0.06, 0.045]])


def test_a_table_of_counts_is_refused(tmp_path):
    with pytest.raises(mb.InputError, match=r"holds counts.*metabandit fit"):
        mb.Table(write(tmp_path, LONG))


def test_a_sheet_knows_its_lines(tmp_path):
    sheet = read_sheet(write(tmp_path, 'a,b\n\n"two\nlines",3\nx,4\n'))
    assert sheet.lines == (3, 5)
    assert sheet.where(1, 1).endswith("line 5, column 2 (b)")
