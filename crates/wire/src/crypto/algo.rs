//! The algorithms a minion may ask for, by the names Salt gives them.

use std::fmt;

/// How short secrets are encrypted for an RSA key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EncAlgo {
    /// RSAES-OAEP with SHA-1 throughout: what every default minion uses.
    #[default]
    OaepSha1,
    /// RSAES-OAEP with SHA-224 throughout.
    OaepSha224,
}

/// How RSA signatures are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SigAlgo {
    /// RSASSA-PKCS1-v1_5 with SHA-1: what every default minion uses.
    #[default]
    Pkcs1v15Sha1,
    /// RSASSA-PKCS1-v1_5 with SHA-224.
    Pkcs1v15Sha224,
}

impl EncAlgo {
    /// Reads Salt's name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::OaepSha1, Self::OaepSha224].into_iter().find(|algo| algo.as_str() == name)
    }

    /// Salt's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OaepSha1 => "OAEP-SHA1",
            Self::OaepSha224 => "OAEP-SHA224",
        }
    }
}

impl SigAlgo {
    /// Reads Salt's name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Pkcs1v15Sha1, Self::Pkcs1v15Sha224].into_iter().find(|algo| algo.as_str() == name)
    }

    /// Salt's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pkcs1v15Sha1 => "PKCS1v15-SHA1",
            Self::Pkcs1v15Sha224 => "PKCS1v15-SHA224",
        }
    }
}

impl fmt::Display for EncAlgo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SigAlgo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fixed_names_are_read() {
        assert_eq!(EncAlgo::parse("OAEP-SHA224"), Some(EncAlgo::OaepSha224));
        assert_eq!(SigAlgo::parse("PKCS1v15-SHA1"), Some(SigAlgo::Pkcs1v15Sha1));
        for other in ["", "OAEP-SHA256", "oaep-sha1", "PKCS1v15-MD5"] {
            assert_eq!((EncAlgo::parse(other), SigAlgo::parse(other)), (None, None), "{other}");
        }
    }
}
