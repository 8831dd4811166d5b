"""The page of clients says what a report says, no more."""

from __future__ import annotations

from pathlib import Path

from tests.clients_page import Client, Ran, page, read, sentence

REPORT = """<testsuites><testsuite>
<testcase classname="tests.stock_clients.test_some" name="test_it_reads[gzip]"/>
<testcase classname="tests.stock_clients.test_some" name="test_it_writes"><failure message="no"/></testcase>
<testcase classname="tests.stock_clients.test_other" name="test_it_waits"><skipped message="absent"/></testcase>
</testsuite></testsuites>"""


def test_each_test_of_a_client_is_a_row_with_its_result(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    ran = read([report])
    assert ran == [
        Ran("test_some", "test_it_reads[gzip]", "passed"),
        Ran("test_some", "test_it_writes", "failed"),
        Ran("test_other", "test_it_waits", "skipped"),
    ]
    written = page(ran, [Client("Some client 1.0", "test_some"), Client("Absent client", "test_absent")])
    assert "| it reads: gzip | passed |" in written
    assert "| it writes | failed |" in written
    assert "it waits" not in written
    assert "Absent client" not in written


def test_a_name_becomes_a_sentence_without_what_picked_it() -> None:
    assert sentence("test_a_copy_is_whole[5000-4.3.1]", "4.3.1") == "a copy is whole: 5000"
    assert sentence("test_topics_are_made[4.3.1]", "4.3.1") == "topics are made"
    assert sentence("test_records_come_back[cooperative-sticky]", "") == "records come back: cooperative-sticky"
