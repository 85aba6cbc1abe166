//! store/recorder.h: what a reader keeps of a ring is complete.

use crate::model::{check, get, set, Without, Word};
use loom::sync::Arc;
use loom::thread;

const SIZE: u32 = 2;
const PUSHES: u32 = 3;

#[derive(Default)]
struct Recorder {
    head: Word,
    records: [[Word; 2]; SIZE as usize],
}

fn fill(recorder: &Recorder, number: u32) {
    for word in &recorder.records[(number % SIZE) as usize] {
        set(word, number + 1);
    }
}

fn push(recorder: &Recorder, number: u32, without: Without) {
    without.write("recorder_push (a)");
    set(&recorder.head, number + 1);
    without.write("recorder_push (b)");
}

fn run(without: Without) {
    let recorder = Arc::new(Recorder::default());
    let writer = recorder.clone();
    let session = thread::spawn(move || {
        for number in 0..PUSHES {
            fill(&writer, number);
            push(&writer, number, without);
        }
    });

    let head = get(&recorder.head);
    let from = head - head.min(SIZE);
    without.read("recorder_copy (a)");
    let copies: Vec<[u32; 2]> = (from..head)
        .map(|number| &recorder.records[(number % SIZE) as usize])
        .map(|record| [get(&record[0]), get(&record[1])])
        .collect();
    without.read("recorder_copy (b)");
    let building = get(&recorder.head) + 1;
    let intact = (building - building.min(SIZE)).max(from).min(head);
    for number in intact..head {
        assert_eq!(
            copies[(number - from) as usize],
            [number + 1; 2],
            "record {number} is complete"
        );
    }
    session.join().unwrap();
}

#[test]
fn recorder() {
    check(
        "store/recorder.h",
        run,
        &[
            "recorder_push (a)",
            "recorder_push (b)",
            "recorder_copy (a)",
            "recorder_copy (b)",
        ],
    );
}
