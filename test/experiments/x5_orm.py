"""An ORM that loads children lazily, and the JOIN instead."""

import clients
from formulas import Prediction
from page import Section, percent, table

TITLE = "An ORM's N+1"

RTT = 0.010
STATEMENTS = 1001
PAGES, PAGE_STATEMENTS = 25, 41

TEXT = """\
**Published.** An ORM that loads the children of 1,000 parents lazily sends 1,001 statements; the remedy is a JOIN.

**Here.** SQLAlchemy runs over {rtt:g} ms: first {statements:,} statements in one transaction, then, as web pages do,
{pages} transactions of {page} statements. For both, `pgnetlat_diagnose()` says beforehand what a JOIN would save. For the
pages, `pgnetlat_what_if(batch => {batch:.3g})` says how long a page would take if its statements, BEGIN and ROLLBACK
shared three round trips. Then both run with `joinedload`.

"""

LATER = """\
The finding before the change: *{verdict}*, {evidence}.

A JOIN saves the round trips, and also what server and driver do for each statement; the finding counts both. `batch`
keeps the statements and saves only round trips: {kept:.2f} s for a page. That is a prediction for a pipeline, and an upper
bound for a JOIN ({eagerly:.2f} s).
"""


def run(lab, short):
    statements, pages = (41, 21) if short else (STATEMENTS, PAGES)
    page = 11 if short else PAGE_STATEMENTS
    batch = (page + 2) / 3
    clients.prepare(lab)
    lab.path(RTT)
    lazily = clients.run(lab, "lazy loading", "one by one", statements)
    finding = clients.finding(lab, "lazy loading")
    eagerly = clients.run(lab, "lazy loading", "JOIN", statements)

    pages_lazily = clients.run(lab, "pages", "lazily", f"{page}x{pages}") / pages
    reply = clients.ask(lab, "pages", f"batch => {batch}")
    page_saving = clients.finding(lab, "pages")["saving"] / pages
    pages_eagerly = clients.run(lab, "pages", "JOIN", f"{page}x{pages}") / pages

    whole = Prediction(f"{statements:,} statements, saved by a JOIN", finding["saving"], lazily - eagerly, "s",
                       "pgnetlat_diagnose")
    saved = Prediction(f"a page of {page} statements, saved by a JOIN", page_saving, pages_lazily - pages_eagerly, "s",
                       "pgnetlat_diagnose")
    kept = reply["predicted_transaction_time"] / reply["transaction_time"] * pages_lazily
    text = "\n".join((
        TEXT.format(rtt=RTT * 1000, statements=statements, pages=pages, page=page, batch=batch).rstrip("\n") + "\n",
        table(("", "lazily", "a JOIN saves, predicted before", "saves, measured after", "off by", "with the JOIN"),
              [(f"{statements:,} statements", *cells(lazily, whole, eagerly)),
               (f"a page of {page} statements", *cells(pages_lazily, saved, pages_eagerly))]),
        LATER.format(**finding, page=page, kept=kept, eagerly=pages_eagerly)))
    return Section(TITLE, text,
                   f"**An ORM's N+1**: {lazily:.1f} s became {eagerly:.2f} s with a JOIN, which was predicted to save"
                   f" {whole.predicted:.1f} s and saved {whole.measured:.1f} s ({percent(whole.error)}).", [whole, saved])


def cells(before, saved, after):
    return f"{before:.3g} s", f"{saved.predicted:.3g} s", f"{saved.measured:.3g} s", percent(saved.error), f"{after:.2g} s"
