//! PEM, as far as RSA keys need it: one block, no headers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// An 8192-bit private key takes less than half of it.
const MAX_LEN: usize = 16 << 10;

/// The label and content of the only block in `text`. Line ends and surrounding blanks do not matter.
pub(super) fn read(text: &str) -> Option<(&str, Zeroizing<Vec<u8>>)> {
    let text = Some(text.trim()).filter(|text| text.len() <= MAX_LEN)?;
    let (label, rest) = text.strip_prefix("-----BEGIN ")?.split_once("-----")?;
    let body = rest.strip_suffix("-----")?.strip_suffix(label)?.strip_suffix("-----END ")?;
    let base64: Zeroizing<Vec<u8>> = Zeroizing::new(body.bytes().filter(|b| !b.is_ascii_whitespace()).collect());
    Some((label, Zeroizing::new(STANDARD.decode(&*base64).ok()?)))
}

/// Salt's clean form: lines of 64 characters, no line end after the last.
pub(super) fn write(label: &str, der: &[u8]) -> Zeroizing<String> {
    let base64 = Zeroizing::new(STANDARD.encode(der));
    let mut text = Zeroizing::new(String::with_capacity(base64.len() + base64.len() / 64 + 2 * label.len() + 40));
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_whatever_the_line_ends() {
        let der = [5; 100];
        let text = write("THING", &der);
        assert!(text.ends_with("-----END THING-----"));
        for form in [text.to_string(), format!("\n {}\n\n", *text), text.replace('\n', "\r\n")] {
            let (label, back) = read(&form).unwrap();
            assert_eq!((label, &back[..]), ("THING", &der[..]));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let good = write("A", b"xyz");
        for bad in [
            "",
            "-----BEGIN A-----",
            "-----BEGIN A-----\n-----END B-----",
            "-----BEGIN A-----\nk: v\n\neHl6\n-----END A-----",
            &format!("{}{}", *good, *good),
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
        assert!(read(&" ".repeat(MAX_LEN + 1)).is_none());
        assert!(read(&write("A", &vec![0; MAX_LEN])).is_none());
    }
}
