//! store/tally.h: what a session has counted is taken once, whole, and never lost.

use crate::model::{change, check, get, set, Without, Word};
use loom::sync::Arc;
use loom::thread;

const KEPT: u32 = 0;
const PROPOSED: u32 = 1;
const TAKEN: u32 = 2;
const COUNTS: u32 = 2;

#[derive(Default)]
struct Shared {
    count: Word,
    state: Word,
    tally: Word,
}

/// tally_settle(), and one more of what is counted, in a write section.
fn count_one(shared: &Shared, sections: u32, tally: u32, without: Without) -> u32 {
    set(&shared.count, 2 * sections + 1);
    without.full("seqlock_write_begin");
    let mut state = get(&shared.state);
    while state != KEPT && !change(&shared.state, state, KEPT) {
        state = get(&shared.state);
    }
    let tally = if state == TAKEN { 1 } else { tally + 1 };
    set(&shared.tally, tally);
    without.write("seqlock_write_end");
    set(&shared.count, 2 * sections + 2);
    tally
}

/// tally_take(), with one attempt: 0 if it fails.
fn take(shared: &Shared, without: Without) -> u32 {
    let before = get(&shared.count);
    without.read("seqlock_read_begin");
    if get(&shared.state) == TAKEN {
        return 0;
    }
    let copy = get(&shared.tally);
    without.read("seqlock_read_valid");
    if get(&shared.count) != before || before & 1 != 0 || !change(&shared.state, KEPT, PROPOSED) {
        return 0;
    }
    without.full("tally_take");
    if get(&shared.count) != before {
        change(&shared.state, PROPOSED, KEPT);
        return 0;
    }
    if change(&shared.state, PROPOSED, TAKEN) {
        copy
    } else {
        0
    }
}

fn run(without: Without) {
    let shared = Arc::new(Shared::default());
    let writer = shared.clone();
    let session = thread::spawn(move || {
        let mut tally = 0;
        for sections in 0..COUNTS {
            tally = count_one(&writer, sections, tally, without);
        }
    });

    let taken = take(&shared, without);
    session.join().unwrap();
    let left = if get(&shared.state) == TAKEN {
        0
    } else {
        get(&shared.tally)
    };
    assert_eq!(
        taken + left,
        COUNTS,
        "nothing is lost, and nothing is taken twice"
    );
}

#[test]
fn tally() {
    check(
        "store/tally.h",
        run,
        &[
            "seqlock_write_begin",
            "seqlock_write_end",
            "seqlock_read_begin",
            "tally_take",
        ],
    );
}
