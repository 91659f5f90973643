//! A file of names and passwords, as Salt's `file` backend has it.
//!
//! The file is read at every log-in, so that a change counts at once. Types of file: `text` with fields, `htpasswd` and
//! `htdigest`. What cannot be understood is refused at start by name; an entry of an htpasswd file whose scheme is not known
//! lets nobody in, and is named in the log.

mod hash;

use super::Error;
use super::error::Trouble;
use hash::{Hash, Htpasswd};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// The largest file that is read.
const LARGEST: u64 = 16 << 20;
/// How many log-ins may read and hash at once.
const THREADS: usize = 4;
/// What the options' names begin with where they stand among the users in `external_auth`.
const PLACE: &str = "external_auth:file:^";

/// Which file, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub format: Format,
}

/// What is in a file of passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// Lines of fields.
    Text {
        /// How passwords are written.
        hash: Hash,
        /// What stands between two fields.
        separator: String,
        /// Which field is the name; the first is 1.
        user_field: usize,
        /// Which field is the password.
        password_field: usize,
    },
    /// As Apache's `htpasswd` writes it: bcrypt, apr1 and SHA-1 entries.
    Htpasswd,
    /// As Apache's `htdigest` writes it.
    Htdigest {
        /// The realm whose entries count.
        realm: String,
    },
}

impl Settings {
    /// Reads the options that stand in `external_auth` under `file`, with or without their `^`.
    pub fn from_options<'a>(options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, Error> {
        let (mut path, mut filetype, mut hashtype) = (None, "text".to_owned(), "plaintext");
        let (mut separator, mut user_field, mut password_field, mut realm) = (":", 1, 2, None);
        for (name, value) in options {
            let name = name.trim_start_matches('^');
            match name {
                "filename" => path = Some(PathBuf::from(value)),
                "filetype" => filetype = value.to_lowercase(),
                "hashtype" => hashtype = value,
                "field_separator" => separator = value,
                "username_field" => user_field = field(name, value)?,
                "password_field" => password_field = field(name, value)?,
                "realm" => realm = Some(value.to_owned()),
                _ => return Err(wrong(name, "is no option of this backend")),
            }
        }
        let format = match filetype.as_str() {
            "text" if separator.is_empty() => return Err(wrong("field_separator", "must not be empty")),
            "text" => Format::Text {
                hash: Hash::from_name(hashtype).ok_or_else(|| {
                    wrong("hashtype", "must be plaintext, md5, sha1, sha256 or sha512; others are not supported")
                })?,
                separator: separator.to_owned(),
                user_field,
                password_field,
            },
            "htpasswd" => Format::Htpasswd,
            "htdigest" => {
                let realm = realm.filter(|realm| !realm.is_empty());
                Format::Htdigest { realm: realm.ok_or_else(|| wrong("realm", "must be set for htdigest"))? }
            }
            _ => return Err(wrong("filetype", "must be text, htpasswd or htdigest")),
        };
        Ok(Self { path: path.ok_or_else(|| wrong("filename", "must be set"))?, format })
    }
}

fn field(name: &str, value: &str) -> Result<usize, Error> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(name, "must be a number; the first field is 1"))
}

fn wrong(option: &str, problem: &str) -> Error {
    Error::setting(format!("{PLACE}{option}"), problem)
}

/// The file, ready to be asked.
pub(super) struct PasswordFile {
    settings: Arc<Settings>,
    threads: Arc<Semaphore>,
}

impl PasswordFile {
    /// A file that cannot be read now may be there later; the log says so at once.
    pub(super) fn new(settings: Settings) -> Result<Self, Error> {
        let path = settings.path.display();
        match read(&settings.path) {
            Ok(text) if settings.format == Format::Htpasswd => {
                for user in Htpasswd::not_understood(&text) {
                    tracing::warn!(user, %path, "this entry lets nobody in: use bcrypt (htpasswd -B)");
                }
            }
            Ok(_) => {}
            Err(trouble) => tracing::warn!(%trouble, "nobody can log in by the file of passwords yet"),
        }
        Ok(Self { settings: Arc::new(settings), threads: Arc::new(Semaphore::new(THREADS)) })
    }

    pub(super) async fn check(&self, user: &str, password: &str) -> Result<bool, Trouble> {
        let Ok(place) = Arc::clone(&self.threads).acquire_owned().await else { return Ok(false) };
        let (settings, user, password) =
            (Arc::clone(&self.settings), user.to_owned(), Zeroizing::new(password.to_owned()));
        let checked = tokio::task::spawn_blocking(move || {
            let _place = place;
            settings.format.check(&read(&settings.path)?, &user, &password)
        });
        checked.await.map_err(|error| Trouble::new(format!("the check ended early: {error}")))?
    }
}

impl Format {
    /// Whether the file's text says that this is the user's password. The first entry of a name decides.
    fn check(&self, text: &str, user: &str, password: &str) -> Result<bool, Trouble> {
        match self {
            Self::Text { hash, separator, user_field, password_field } => {
                let mut lines = text.lines().map(|line| line.trim().split(separator.as_str()));
                let of_user = lines.find(|fields| fields.clone().nth(user_field - 1) == Some(user));
                let stored = of_user.and_then(|mut fields| fields.nth(password_field - 1));
                Ok(stored.is_some_and(|stored| hash.matches(stored, password)))
            }
            Self::Htpasswd => match Htpasswd::entry(text, user) {
                Some(stored) => Htpasswd::matches(stored, password),
                None => Ok(false),
            },
            Self::Htdigest { realm } => {
                let mut lines = text.lines().map(|line| line.trim_end().splitn(3, ':'));
                let of_user = lines.find(|fields| fields.clone().take(2).eq([user, realm]));
                let stored = of_user.and_then(|mut fields| fields.nth(2));
                let whole = Zeroizing::new(format!("{user}:{realm}:{password}"));
                Ok(stored.is_some_and(|stored| Hash::Md5.matches(stored, &whole)))
            }
        }
    }
}

fn read(path: &Path) -> Result<Zeroizing<String>, Trouble> {
    let cannot = |error: std::io::Error| Trouble::new(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let mut text = Zeroizing::new(String::new());
    let size = file.take(LARGEST + 1).read_to_string(&mut text).map_err(cannot)?;
    if size as u64 > LARGEST {
        return Err(Trouble::new(format!("{} is larger than {LARGEST} bytes", path.display())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(options: &[(&str, &str)]) -> Result<Settings, String> {
        let file = [("^filename", "/etc/users")];
        Settings::from_options(file.iter().chain(options).copied()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(options: &[(&str, &str)], text: &str, yes: &[(&str, &str)], no: &[(&str, &str)]) {
        let format = settings(options).unwrap().format;
        let answer = |user, password| format.check(text, user, password).unwrap();
        for (user, password) in yes {
            assert!(answer(user, password), "{user} {password} must be let in");
        }
        for (user, password) in no {
            assert!(!answer(user, password), "{user} {password} must not be let in");
        }
    }

    #[test]
    fn a_text_file_has_names_and_passwords() {
        let text = "dean:goneFishing\n\nshort\ngene:OceanMan\ngene:second\n";
        let yes = [("dean", "goneFishing"), ("gene", "OceanMan")];
        let no = [("gene", "second"), ("gene", "goneFishing"), ("short", "short"), ("mike", "OceanMan")];
        check(&[], text, &yes, &no);
    }

    #[test]
    fn fields_separator_and_hash_can_be_chosen() {
        let options = [("^filetype", "text"), ("^hashtype", "md5"), ("^username_field", "2"), ("^password_field", "3")];
        let options = [options.as_slice(), &[("^field_separator", "|")]].concat();
        let text = "46|trey|900150983cd24fb0d6963f7d28e17f72\n555|mike|900150983CD24FB0D6963F7D28E17F72\n1|page|\n";
        let no = [("trey", "abd"), ("46", "abc"), ("trey", "900150983cd24fb0d6963f7d28e17f72"), ("page", "abc")];
        check(&options, text, &[("trey", "abc"), ("mike", "abc")], &no);
    }

    #[test]
    fn an_htdigest_file_is_read_for_its_realm() {
        let text = "ann:other:00000000000000000000000000000000\nann:salt:dbe6eac7800cf1da5084ff17425422b6\n";
        check(&[("filetype", "htdigest"), ("realm", "salt")], text, &[("ann", "pw")], &[("ann", "px"), ("bob", "pw")]);
    }

    #[test]
    fn what_could_never_work_is_refused_at_start() {
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[("^filetype", "shadow")], "external_auth:file:^filetype: must be text, htpasswd or htdigest"),
            (&[("^hashtype", "crypt")], "external_auth:file:^hashtype: must be plaintext, md5, sha1, sha256 or sha512"),
            (&[("^username_field", "0")], "external_auth:file:^username_field: must be a number"),
            (&[("^filetype", "htdigest")], "external_auth:file:^realm: must be set"),
            (&[("^field_separator", "")], "external_auth:file:^field_separator: must not be empty"),
            (&[("^colour", "red")], "external_auth:file:^colour: is no option"),
        ];
        for (options, expected) in cases {
            let error = settings(options).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = Settings::from_options([("^filetype", "text")]).unwrap_err();
        assert_eq!(error.to_string(), "external_auth:file:^filename: must be set");
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic_or_lets_in_a_stranger(text in "[ab:|$\\n{}SHA12apry/=. ]{0,80}", password in "[a-z]{1,8}") {
            let htdigest = Format::Htdigest { realm: "a".into() };
            for format in [settings(&[]).unwrap().format, Format::Htpasswd, htdigest] {
                prop_assert!(!format.check(&text, "stranger", &password).unwrap());
                let _ = format.check(&text, "a", &password);
            }
        }
    }
}
