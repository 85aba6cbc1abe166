//! lib/seqlock.h: a copy that is valid is of one moment.

use crate::model::{check, get, set, Without, Word};
use loom::sync::Arc;
use loom::thread;

#[derive(Default)]
struct Shared {
    count: Word,
    data: [Word; 2],
}

fn write(shared: &Shared, value: u32, without: Without) {
    set(&shared.count, 2 * value - 1);
    without.full("seqlock_write_begin");
    for word in &shared.data {
        set(word, value);
    }
    without.write("seqlock_write_end");
    set(&shared.count, 2 * value);
}

fn run(without: Without) {
    let shared = Arc::new(Shared::default());
    let writer = shared.clone();
    let session = thread::spawn(move || write(&writer, 1, without));

    let before = get(&shared.count);
    without.read("seqlock_read_begin");
    let copy = [get(&shared.data[0]), get(&shared.data[1])];
    without.read("seqlock_read_valid");
    if get(&shared.count) == before && before & 1 == 0 {
        assert_eq!(
            copy,
            [before / 2; 2],
            "the copy is that of its change count"
        );
    }
    session.join().unwrap();
}

#[test]
fn seqlock() {
    check(
        "lib/seqlock.h",
        run,
        &[
            "seqlock_write_begin",
            "seqlock_write_end",
            "seqlock_read_begin",
            "seqlock_read_valid",
        ],
    );
}
