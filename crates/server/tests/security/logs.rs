//! Everything any server of this test process logs, at the finest level.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use tracing_subscriber::filter::LevelFilter;

static SAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Starts to capture, once per process.
pub(crate) fn capture() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false).with_writer(|| Said).init();
    });
}

/// Whether this text was logged.
pub(crate) fn contain(text: &[u8]) -> bool {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.windows(text.len()).any(|window| window == text)
}

struct Said;

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
