//! Which of two package versions is newer, by the rules of dpkg and of rpm.

use std::cmp::Ordering;

/// Debian's order (deb-version(7)): epoch, upstream, revision; letters before other signs, `~` before everything.
pub(super) fn compare_deb(a: &str, b: &str) -> Ordering {
    fn parts(version: &str) -> (u64, &str, &str) {
        let (epoch, rest) =
            version.split_once(':').map_or((0, version), |(epoch, rest)| (epoch.parse().unwrap_or(0), rest));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        (epoch, upstream, revision)
    }
    let ((epoch_a, upstream_a, revision_a), (epoch_b, upstream_b, revision_b)) = (parts(a), parts(b));
    epoch_a.cmp(&epoch_b).then_with(|| deb_part(upstream_a, upstream_b)).then_with(|| deb_part(revision_a, revision_b))
}

fn deb_part(a: &str, b: &str) -> Ordering {
    let weight = |byte: Option<&u8>| match byte {
        None => 0,
        Some(b'~') => -1,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while !a.is_empty() || !b.is_empty() {
        while a.first().is_some_and(|c| !c.is_ascii_digit()) || b.first().is_some_and(|c| !c.is_ascii_digit()) {
            match weight(a.first()).cmp(&weight(b.first())) {
                Ordering::Equal => (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default()),
                other => return other,
            }
        }
        let (digits_a, rest_a) = split_digits(a);
        let (digits_b, rest_b) = split_digits(b);
        match compare_numbers(digits_a, digits_b) {
            Ordering::Equal => (a, b) = (rest_a, rest_b),
            other => return other,
        }
    }
    Ordering::Equal
}

/// rpm's order: epoch, version, release; a release that one of the two does not name is not compared.
pub(super) fn compare_rpm(a: &str, b: &str) -> Ordering {
    fn parts(version: &str) -> (u64, &str, &str) {
        let (epoch, rest) =
            version.split_once(':').map_or((0, version), |(epoch, rest)| (epoch.parse().unwrap_or(0), rest));
        let (version, release) = rest.rsplit_once('-').unwrap_or((rest, ""));
        (epoch, version, release)
    }
    let ((epoch_a, version_a, release_a), (epoch_b, version_b, release_b)) = (parts(a), parts(b));
    let releases = || {
        if release_a.is_empty() || release_b.is_empty() { Ordering::Equal } else { rpm_part(release_a, release_b) }
    };
    epoch_a.cmp(&epoch_b).then_with(|| rpm_part(version_a, version_b)).then_with(releases)
}

fn rpm_part(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let is_sign = |c: &u8| !c.is_ascii_alphanumeric() && !matches!(c, b'~' | b'^');
        while a.first().is_some_and(is_sign) {
            a = &a[1..];
        }
        while b.first().is_some_and(is_sign) {
            b = &b[1..];
        }
        match (a.first(), b.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (a, b) = (&a[1..], &b[1..]);
                continue;
            }
            // A tilde is before everything, also before the end.
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            // A caret is after the end, and before everything else.
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), _) => return Ordering::Less,
            (_, Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() != y.is_ascii_digit() => {
                // Numbers are newer than letters.
                return if x.is_ascii_digit() { Ordering::Greater } else { Ordering::Less };
            }
            (Some(x), Some(_)) => {
                let order = if x.is_ascii_digit() {
                    let ((digits_a, rest_a), (digits_b, rest_b)) = (split_digits(a), split_digits(b));
                    (a, b) = (rest_a, rest_b);
                    compare_numbers(digits_a, digits_b)
                } else {
                    let ((letters_a, rest_a), (letters_b, rest_b)) = (split_letters(a), split_letters(b));
                    (a, b) = (rest_a, rest_b);
                    letters_a.cmp(letters_b)
                };
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn split_letters(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).count())
}

/// Numbers of any length.
fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let trim = |digits: &[u8]| digits.iter().position(|digit| *digit != b'0').map_or(digits.len(), |at| at);
    let (a, b) = (&a[trim(a)..], &b[trim(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(compare: fn(&str, &str) -> Ordering, rising: &[&str]) {
        for pair in rising.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
    }

    #[test]
    fn debian_versions_rise() {
        check(
            compare_deb,
            &["1.0~rc1-1", "1.0-1", "1.0-1ubuntu1", "1.0-1+b1", "1.0.1-1", "1.2-1", "1.10-1", "1:0.5-1"],
        );
        assert_eq!(compare_deb("1.0-0", "1.0"), Ordering::Equal);
        assert_eq!(compare_deb("1.00", "1.0"), Ordering::Equal);
    }

    #[test]
    fn debian_versions_compare_as_dpkg_says() {
        let versions = [
            "1.0", "1.0-1", "1.0~", "1.0a", "1.0+dfsg", "0:1.0", "1:0", "1.0.", "2-1.1", "2-1", "10", "9", "1.0~~a",
            "1.0-~",
        ];
        for a in versions {
            for b in versions {
                let is = |op: &str| std::process::Command::new("dpkg").args(["--compare-versions", a, op, b]).status();
                let Ok(less) = is("lt") else {
                    eprintln!("SKIPPED: dpkg is not installed");
                    return;
                };
                let expected = match (less.success(), is("eq").unwrap().success()) {
                    (true, _) => Ordering::Less,
                    (false, true) => Ordering::Equal,
                    (false, false) => Ordering::Greater,
                };
                assert_eq!(compare_deb(a, b), expected, "{a} {b}");
            }
        }
    }

    #[test]
    fn rpm_versions_rise() {
        check(
            compare_rpm,
            &["1.0~rc1-1", "1.0-1", "1.0-2", "1.0^git1-1", "1.0.1-1", "1.10-1", "2.0-1.el8", "2.0-1.el9", "1:0.1-1"],
        );
        check(compare_rpm, &["1.a", "1.1", "1.1a", "1.2"]);
        assert_eq!(compare_rpm("1.0", "1.0-5"), Ordering::Equal);
        assert_eq!(compare_rpm("1_0", "1.0"), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn order_is_the_same_from_both_sides(a in "[0-9a-z.~^+:-]{0,12}", b in "[0-9a-z.~^+:-]{0,12}") {
            for compare in [compare_deb, compare_rpm] {
                prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
                prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            }
        }
    }
}
