//! What is handed over without a lock, under the memory model of C11, in all orders.
//!
//! Each model is the protocol that the header of a file in C describes, step for step:
//! lib/seqlock.h, store/recorder.h, store/tally.h, store/active_sessions.h.  Loom runs its
//! threads in all interleavings, and gives each load all values that C11 allows.  With all
//! barriers nothing may go wrong; without any one of them, something must: so a barrier
//! that is missing in the model would be noticed, and one that is here is needed.
//!
//! A plain load or store of C is a relaxed one here.  pg_memory_barrier() is a fence that is
//! sequentially consistent, pg_write_barrier() a release and pg_read_barrier() an acquire fence;
//! an atomic operation of core's that changes something is a full barrier as well, but not here:
//! the code does not rely on that.
//!
//! A session keeps in a variable what it alone writes.  Loom remembers only the latest access to
//! each word, so a load by its writer would hide an earlier one by a reader.

#[cfg(test)]
mod active_sessions;
#[cfg(test)]
mod recorder;
#[cfg(test)]
mod seqlock;
#[cfg(test)]
mod tally;

#[cfg(test)]
mod model {
    use loom::sync::atomic::{fence, AtomicU32, Ordering};
    use std::sync::{atomic::AtomicUsize, Arc};

    pub type Word = AtomicU32;

    /// The barrier that a run leaves out, by the name it has in its model.
    #[derive(Clone, Copy)]
    pub struct Without(pub &'static str);

    impl Without {
        pub fn full(self, name: &str) {
            self.fence(name, Ordering::SeqCst);
        }

        /// Stores before it are seen before stores after it.
        pub fn write(self, name: &str) {
            self.fence(name, Ordering::Release);
        }

        /// Loads before it come before loads after it.
        pub fn read(self, name: &str) {
            self.fence(name, Ordering::Acquire);
        }

        fn fence(self, name: &str, order: Ordering) {
            if self.0 != name {
                fence(order);
            }
        }
    }

    pub fn get(word: &Word) -> u32 {
        word.load(Ordering::Relaxed)
    }

    pub fn set(word: &Word, value: u32) {
        word.store(value, Ordering::Relaxed);
    }

    /// pg_atomic_compare_exchange_u32(): whether it was done.
    pub fn change(word: &Word, from: u32, to: u32) -> bool {
        word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Nothing goes wrong with all barriers, and something does without each of these.  Prints a row for the page.
    pub fn check(file: &str, run: fn(Without), barriers: &[&'static str]) {
        let executions = Arc::new(AtomicUsize::new(0));
        let counted = executions.clone();
        loom::model(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            run(Without("none"))
        });
        let unnoticed: Vec<_> = barriers
            .iter()
            .filter(|&&name| {
                std::panic::catch_unwind(|| loom::model(move || run(Without(name)))).is_ok()
            })
            .collect();
        assert!(
            unnoticed.is_empty(),
            "nothing goes wrong without {unnoticed:?}"
        );
        println!(
            "| `{file}` | {} | {} |",
            executions.load(Ordering::Relaxed),
            barriers.join(", ")
        );
    }
}
