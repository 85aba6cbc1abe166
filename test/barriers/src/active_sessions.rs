//! store/active_sessions.h: no session becomes active while the sampler sleeps on.

use crate::model::{check, get, set, Without, Word};
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::Arc;
use loom::thread;

struct Shared {
    begun: Word,
    active: Word,
    asleep: Word,
    latch: Word,
}

fn active_enter(shared: &Shared, without: Without) {
    shared.active.fetch_or(1, Relaxed);
    without.full("active_enter");
    if get(&shared.asleep) == 0 || shared.asleep.swap(0, Relaxed) == 0 {
        return;
    }
    set(&shared.latch, 1);
}

/// An exchange begins, and active_announce().
fn exchange_begin(shared: &Shared, without: Without) {
    set(&shared.begun, 1);
    without.full("active_announce");
    if get(&shared.active) & 1 == 0 {
        active_enter(shared, without);
    }
}

/// The session is made quiet, and looked at once more; whether the sampler sleeps then.
fn sampler(shared: &Shared, without: Without) -> bool {
    shared.active.fetch_and(!1, Relaxed);
    without.full("active_leave");
    if get(&shared.begun) != 0 {
        active_enter(shared, without);
    }
    shared.asleep.swap(1, Relaxed);
    without.full("active_fall_asleep");
    if get(&shared.active) != 0 {
        set(&shared.asleep, 0);
        return false;
    }
    true
}

fn run(without: Without) {
    let shared = Arc::new(Shared {
        begun: Word::new(0),
        active: Word::new(1),
        asleep: Word::new(0),
        latch: Word::new(0),
    });
    let other = shared.clone();
    let session = thread::spawn(move || exchange_begin(&other, without));
    let sleeps = sampler(&shared, without);

    session.join().unwrap();
    assert!(
        !sleeps || get(&shared.latch) == 1,
        "the sampler sleeps while a session is active"
    );
}

#[test]
fn active_sessions() {
    check(
        "store/active_sessions.h",
        run,
        &[
            "active_enter",
            "active_announce",
            "active_leave",
            "active_fall_asleep",
        ],
    );
}
