//! Passwords: asked for on the terminal without showing them, or read from where a program puts them.

use crate::failure::{Failure, INTERRUPTED};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use saltern_api::login::Secret;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Write};

/// The longest password that is read.
const LONGEST: usize = 1024;

/// Asks on the terminal. `instead` says what to do where there is none.
pub(crate) fn ask(prompt: &str, instead: &str) -> Result<Secret, Failure> {
    let no_terminal = |_| Failure::usage("there is no terminal to ask for the password on").hint(instead.to_owned());
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(no_terminal)?;
    write!(terminal, "{prompt}")?;
    terminal.flush()?;
    let read = {
        let hidden =
            Hidden::begin(&terminal).map_err(|error| Failure::new(format!("cannot hide the password: {error}")))?;
        read_keys(&mut keys(hidden.terminal))
    };
    writeln!(terminal)?;
    read
}

/// Asks for a new one, twice.
pub(crate) fn ask_new(whose: &str, instead: &str) -> Result<Secret, Failure> {
    let first = ask(&format!("New password for {whose}: "), instead)?;
    let second = ask("The same again: ", instead)?;
    if first.reveal() != second.reveal() {
        return Err(Failure::new("the two passwords differ; nothing was done"));
    }
    Ok(first)
}

/// The first line of standard input.
pub(crate) fn from_stdin() -> Result<Secret, Failure> {
    read_line(io::stdin().lock())
}

fn read_line(input: impl BufRead) -> Result<Secret, Failure> {
    let mut line = Vec::new();
    let unreadable = |error: io::Error| Failure::new(format!("cannot read the password: {error}"));
    input.take(LONGEST as u64 + 2).read_until(b'\n', &mut line).map_err(unreadable)?;
    while line.ends_with(b"\n") || line.ends_with(b"\r") {
        line.pop();
    }
    finish(line)
}

/// One key at a time: what is typed after Enter is for somebody else.
fn keys(mut terminal: &File) -> impl Iterator<Item = io::Result<u8>> {
    let mut key = [0];
    std::iter::from_fn(move || match terminal.read(&mut key) {
        Ok(0) => None,
        Ok(_) => Some(Ok(key[0])),
        Err(error) => Some(Err(error)),
    })
}

/// The keys that are pressed until Enter, with the few that edit a line.
fn read_keys(keys: &mut impl Iterator<Item = io::Result<u8>>) -> Result<Secret, Failure> {
    let mut typed: Vec<u8> = Vec::new();
    loop {
        match keys.next().transpose()? {
            None | Some(b'\r' | b'\n') => return finish(typed),
            // Ctrl-D
            Some(0x04) if typed.is_empty() => return Err(Failure::new("no password was given")),
            // Ctrl-C; the terminal does not make a signal of it now, which would leave it without echo.
            Some(0x03) => return Err(Failure::silent(INTERRUPTED)),
            Some(0x08 | 0x7f) => {
                // A whole character: its first byte is the one that does not continue another.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            // Ctrl-U
            Some(0x15) => typed.clear(),
            Some(byte) if typed.len() < LONGEST => typed.push(byte),
            Some(_) => return Err(too_long()),
        }
    }
}

fn finish(bytes: Vec<u8>) -> Result<Secret, Failure> {
    if bytes.len() > LONGEST {
        return Err(too_long());
    }
    if bytes.is_empty() {
        return Err(Failure::new("no password was given"));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::new("the password is not UTF-8"))?;
    Ok(text.into())
}

fn too_long() -> Failure {
    Failure::new(format!("a password has at most {LONGEST} bytes"))
}

/// A terminal that shows no keys; as it was, when this is dropped.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Result<String, Failure> {
        read_keys(&mut keys.iter().map(|key| Ok(*key))).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn keys_make_a_password() {
        assert_eq!(typed(b"hunter2\r").unwrap(), "hunter2");
        assert_eq!(typed(b"hunter3\x7f2\n").unwrap(), "hunter2");
        assert_eq!(typed(b"wrong\x15right\r").unwrap(), "right");
        assert_eq!(typed("aé\x7fb\r".as_bytes()).unwrap(), "ab", "a character is taken back as a whole");
    }

    #[test]
    fn an_interrupted_or_empty_password_is_none() {
        assert!(typed(b"hunt\x03").is_err());
        assert!(typed(b"\x04").is_err());
        assert!(typed(b"\r").is_err());
        assert!(typed(&[b'x'; LONGEST + 1]).is_err());
    }

    #[test]
    fn what_is_typed_is_not_shown_and_the_terminal_is_left_as_it_was() {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let shows = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO);
        assert!(shows());
        let hidden = Hidden::begin(&terminal).unwrap();
        assert!(!shows());
        drop(hidden);
        assert!(shows());
    }

    #[test]
    fn a_line_is_read_without_its_end() {
        let read = |text: &'static str| read_line(text.as_bytes()).map(|secret| secret.reveal().to_owned());
        assert_eq!(read("hunter2\r\nmore\n").unwrap(), "hunter2");
        assert_eq!(read(" hunter 2 ").unwrap(), " hunter 2 ");
        assert!(read("\n").is_err());
    }
}
