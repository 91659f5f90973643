//! Which tests this run is for, and what a missing installation means to it.
//!
//! `make check` wants no Salt and no PostgreSQL and says so with `SALTERN_TESTS=fast`; `make test` has installed both,
//! says `SALTERN_TESTS=full`, and takes a missing one as a failure, as does `CI=true`. A bare `cargo test` uses what is
//! there, and says what it left out.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Mutex;

/// Whether this run leaves out everything that needs Salt or PostgreSQL.
pub fn is_fast() -> bool {
    std::env::var("SALTERN_TESTS").is_ok_and(|tier| tier == "fast")
}

/// Whether a missing installation fails the test instead of skipping it.
pub fn is_full() -> bool {
    !is_fast()
        && (std::env::var("SALTERN_TESTS").is_ok_and(|tier| tier == "full")
            || std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1"))
}

/// Notes that something is not available here: fails in a full run, else prints one line per process and thing.
pub fn skip(what: &str, why: &str) {
    assert!(!is_full(), "{what} is needed here: {why}");
    if is_fast() {
        return;
    }
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let first = SAID.lock().is_ok_and(|mut said| said.insert(what.to_owned()));
    if first {
        // Written to the stream itself: `eprintln!` would vanish into the captured output of a passing test.
        let _ = writeln!(std::io::stderr(), "\nSKIPPED without {what}: {why}\n");
    }
}
