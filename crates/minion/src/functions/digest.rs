//! Checksums by the names people use for them.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kinds, with the number of digits each one has.
pub(super) const KINDS: [(&str, usize); 6] =
    [("md5", 32), ("sha1", 40), ("sha224", 56), ("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// A checksum being computed.
pub(crate) struct Digest(Box<dyn DynDigest + Send>);

impl Digest {
    /// A checksum of this kind, if it is one we know.
    pub(crate) fn new(kind: &str) -> Option<Self> {
        Some(Self(match kind {
            "md5" => Box::new(Md5::default()),
            "sha1" => Box::new(Sha1::default()),
            "sha224" => Box::new(Sha224::default()),
            "sha256" => Box::new(Sha256::default()),
            "sha384" => Box::new(Sha384::default()),
            "sha512" => Box::new(Sha512::default()),
            _ => return None,
        }))
    }

    /// Takes in more.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum, in lower-case hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The checksum of these bytes.
    pub(super) fn of(kind: &str, bytes: &[u8]) -> Option<String> {
        let mut digest = Self::new(kind)?;
        digest.update(bytes);
        Some(digest.finish())
    }

    /// The checksum of a file, read piece by piece.
    pub(crate) fn of_file(mut self, path: &Path) -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut piece = vec![0; 64 << 10];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(self.finish()),
                n => self.update(&piece[..n]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_number_of_digits() {
        for (kind, digits) in KINDS {
            assert_eq!(Digest::of(kind, b"").unwrap().len(), digits, "{kind}");
        }
        assert_eq!(Digest::of("crc32", b""), None);
    }

    #[test]
    fn files_and_bytes_agree() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of("sha256", b"abc").unwrap(), expected);
        assert_eq!(Digest::new("sha256").unwrap().of_file(&path).unwrap(), expected);
    }
}
