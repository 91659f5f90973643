//! `hashutil.*`: checksums of texts and files.

use super::call::Answer;
use super::{Call, Digest, Failure, Function, Param};
use std::path::Path;

/// The kinds that stock Salt offers here.
const OFFERED: [&str; 3] = ["md5", "sha256", "sha512"];

const TEXT: &[Param] = &[Param::Required("instr")];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "hashutil.digest",
        params: &[Param::Required("instr"), Param::Optional("checksum", "'md5'")],
        doc: "Give the checksum of a text: md5, sha256 or sha512.\n\n\
              CLI Example:\n\n    saltern run '*' hashutil.digest 'get salted' sha256\n",
        run: |call| call.at_once(|call| digest(call, &kind(call)?)),
    },
    Function {
        name: "hashutil.digest_file",
        params: &[Param::Required("infile"), Param::Optional("checksum", "'md5'")],
        doc: "Give the checksum of a file: md5, sha256 or sha512.\n\n\
              CLI Example:\n\n    saltern run '*' hashutil.digest_file /etc/hosts sha256\n",
        run: |call| call.blocking(digest_file),
    },
    Function {
        name: "hashutil.md5_digest",
        params: TEXT,
        doc: "Give the MD5 checksum of a text.\n\n\
              CLI Example:\n\n    saltern run '*' hashutil.md5_digest 'get salted'\n",
        run: |call| call.at_once(|call| digest(call, "md5")),
    },
    Function {
        name: "hashutil.sha256_digest",
        params: TEXT,
        doc: "Give the SHA-256 checksum of a text.\n\n\
              CLI Example:\n\n    saltern run '*' hashutil.sha256_digest 'get salted'\n",
        run: |call| call.at_once(|call| digest(call, "sha256")),
    },
    Function {
        name: "hashutil.sha512_digest",
        params: TEXT,
        doc: "Give the SHA-512 checksum of a text.\n\n\
              CLI Example:\n\n    saltern run '*' hashutil.sha512_digest 'get salted'\n",
        run: |call| call.at_once(|call| digest(call, "sha512")),
    },
];

fn kind(call: &Call) -> Result<String, Failure> {
    let kind = call.opt_text("checksum")?.unwrap_or_else(|| "md5".into());
    if OFFERED.contains(&kind.as_str()) {
        Ok(kind)
    } else {
        Err(Failure::Command(format!("Hash func '{kind}' is not supported.")))
    }
}

fn digest(call: &Call, kind: &str) -> Answer {
    let bytes = match call.get("instr").and_then(saltern_core::value::Value::as_bytes) {
        Some(bytes) => bytes.to_vec(),
        None => call.text("instr")?.into_bytes(),
    };
    Ok(Digest::of(kind, &bytes).into())
}

fn digest_file(call: &Call) -> Answer {
    let (path, kind) = (call.text("infile")?, kind(call)?);
    if !Path::new(&path).is_file() {
        return Err(Failure::Command(format!("File path '{path}' not found.")));
    }
    Ok(Digest::new(&kind).map(|digest| digest.of_file(Path::new(&path))).transpose()?.into())
}

#[cfg(test)]
mod tests {
    use crate::functions::testing::Bench;

    #[tokio::test]
    async fn texts_and_files_have_checksums() {
        let bench = Bench::new();
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        assert_eq!(bench.call("hashutil.digest", &["abc".into()], &[]).await, md5.into());
        assert_eq!(bench.call("hashutil.md5_digest", &["abc".into()], &[]).await, md5.into());
        std::fs::write(bench.at("f"), "abc").unwrap();
        let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(bench.call("hashutil.digest_file", &[bench.at("f").into(), "sha256".into()], &[]).await, sha.into());
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_said() {
        let bench = Bench::new();
        let text = bench.fail("hashutil.digest", &["abc".into(), "foo".into()], &[]).await;
        assert_eq!(text, "ERROR: Hash func 'foo' is not supported.");
        let text = bench.fail("hashutil.digest_file", &["/nowhere".into()], &[]).await;
        assert_eq!(text, "ERROR: File path '/nowhere' not found.");
    }
}
