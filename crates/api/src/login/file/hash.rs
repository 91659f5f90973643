//! How passwords are written in files: plain, as a digest in hexadecimal digits, or in one of Apache's forms.

use super::super::error::Trouble;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq as _;

/// How the password field of a text file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// As it is.
    Plain,
    /// MD5 in hexadecimal digits.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// The hash that `^hashtype` names.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.to_lowercase().as_str() {
            "plaintext" => Some(Self::Plain),
            "md5" => Some(Self::Md5),
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Whether the field is this password.
    pub(super) fn matches(self, stored: &str, password: &str) -> bool {
        match self {
            // Digests, because their comparison does not tell the length.
            Self::Plain => Sha256::digest(stored).ct_eq(&Sha256::digest(password)).into(),
            Self::Md5 => is_digest::<Md5>(stored, password),
            Self::Sha1 => is_digest::<Sha1>(stored, password),
            Self::Sha256 => is_digest::<Sha256>(stored, password),
            Self::Sha512 => is_digest::<Sha512>(stored, password),
        }
    }
}

fn is_digest<D: Digest>(stored: &str, password: &str) -> bool {
    hex(stored.to_ascii_lowercase().as_bytes(), &D::digest(password))
}

/// Whether `digits` are the hexadecimal digits of `bytes`.
fn hex(digits: &[u8], bytes: &[u8]) -> bool {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).map_or(0, |digit| digit as u8);
    let expected: Vec<u8> = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    expected.ct_eq(digits).into()
}

/// Entries of a file that Apache's `htpasswd` keeps.
pub(super) struct Htpasswd;

/// The forms that are understood.
enum Scheme<'a> {
    Bcrypt,
    Apr1 { salt: &'a str, digest: &'a str },
    Sha1(&'a str),
}

impl Htpasswd {
    /// What is stored for a user.
    pub(super) fn entry<'a>(text: &'a str, user: &str) -> Option<&'a str> {
        Self::entries(text).find(|(name, _)| *name == user).map(|(_, stored)| stored)
    }

    /// The users whose entries are in a form that is not understood.
    pub(super) fn not_understood(text: &str) -> impl Iterator<Item = &str> {
        Self::entries(text).filter(|(_, stored)| Scheme::of(stored).is_none()).map(|(name, _)| name)
    }

    /// Whether an entry is of this password.
    pub(super) fn matches(stored: &str, password: &str) -> Result<bool, Trouble> {
        match Scheme::of(stored) {
            Some(Scheme::Bcrypt) => bcrypt::verify(password, stored)
                .map_err(|error| Trouble::new(format!("the entry of the file of passwords is broken: {error}"))),
            Some(Scheme::Apr1 { salt, digest }) => {
                Ok(apr1(password.as_bytes(), salt.as_bytes()).as_bytes().ct_eq(digest.as_bytes()).into())
            }
            Some(Scheme::Sha1(digest)) => {
                Ok(BASE64.encode(Sha1::digest(password)).as_bytes().ct_eq(digest.as_bytes()).into())
            }
            None => Err(Trouble::new("the entry of the file of passwords is in a form that is not supported")),
        }
    }

    fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
        let lines = text.lines().map(str::trim_end).filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(':'))
    }
}

impl<'a> Scheme<'a> {
    fn of(stored: &'a str) -> Option<Self> {
        if let Some(digest) = stored.strip_prefix("{SHA}") {
            return Some(Self::Sha1(digest));
        }
        if let Some((salt, digest)) = stored.strip_prefix("$apr1$").and_then(|rest| rest.split_once('$')) {
            return Some(Self::Apr1 { salt, digest });
        }
        ["$2y$", "$2a$", "$2b$"].iter().any(|prefix| stored.starts_with(prefix)).then_some(Self::Bcrypt)
    }
}

/// Apache's variant of the MD5 scheme of `crypt`: a thousand rounds, and digits of an alphabet of its own.
fn apr1(password: &[u8], salt: &[u8]) -> String {
    let salt = &salt[..salt.len().min(8)];
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update("$apr1$").chain_update(salt);
    for block in password.chunks(inner.len()) {
        first.update(&inner[..block.len()]);
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { [0] } else { [password[0]] });
        bits >>= 1;
    }
    let mut digest = first.finalize();
    for round in 0..1000 {
        let mut next = Md5::new();
        let is_odd = round % 2 == 1;
        next.update(if is_odd { password } else { &digest[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if is_odd { &digest[..] } else { password });
        digest = next.finalize();
    }
    const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(22);
    let mut write = |mut value: usize, digits: usize| {
        for _ in 0..digits {
            text.push(char::from(DIGITS[value % 64]));
            value /= 64;
        }
    };
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let byte = |index: usize| usize::from(digest[index]);
        write(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    write(usize::from(digest[11]), 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_knows_its_digest_of_abc() {
        let sha512 = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                      2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        let cases = [
            ("plaintext", "abc"),
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("SHA512", sha512),
        ];
        for (name, stored) in cases {
            let hash = Hash::from_name(name).unwrap();
            assert!(hash.matches(stored, "abc"), "{name}");
            assert!(!hash.matches(stored, "abd"), "{name}");
            assert!(!hash.matches("", "abc") && !hash.matches(&stored[1..], "abc"), "{name}");
        }
    }

    /// What `htpasswd` and `openssl passwd -apr1` wrote for these passwords.
    #[test]
    fn apaches_forms_are_understood() {
        let entries = [
            ("myPassword", "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/"),
            ("x", "$apr1$abcdefgh$82JubPF2dQkt1tVfvLnXS."),
            ("a password of more than sixteen bytes", "$apr1$abcdefgh$EJvhw845MtIPi.xyhIm.Y/"),
            ("abc", "{SHA}qZk+NkcGgWq6PiVxeFDCbJzQ2J0="),
            ("abc", "$2b$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i"),
        ];
        for (password, stored) in entries {
            assert!(Htpasswd::matches(stored, password).unwrap(), "{stored}");
            assert!(!Htpasswd::matches(stored, "another").unwrap(), "{stored}");
        }
    }

    #[test]
    fn entries_of_unknown_forms_are_named() {
        let text = "# users\nann:{SHA}qZk+NkcGgWq6PiVxeFDCbJzQ2J0=\nbob:rqXexS6ZhobKA\ncid:$6$salt$digest\ndan:plain\n";
        assert_eq!(Htpasswd::not_understood(text).collect::<Vec<_>>(), ["bob", "cid", "dan"]);
        assert!(Htpasswd::matches("plain", "plain").is_err());
    }
}
