//! Which distribution this is, in the words Salt has always used for it.
//!
//! The names come from `/etc/os-release`, `/etc/lsb-release` and, for old releases of one family, `/etc/*-release`. Two tables
//! turn the names that distributions give themselves into the traditional ones.

use super::source::{ask, read, split_words};
use saltern_core::value::{Map, Value};
use std::collections::HashMap;

/// Adds the grains of the operating system.
pub(super) fn add(grains: &mut Map, cpuarch: &str) {
    let sources = Sources {
        os_release: ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(read),
        lsb_release: read("/etc/lsb-release"),
        old_release: ["/etc/centos-release", "/etc/redhat-release"].iter().find_map(read),
        debian_version: read("/etc/debian_version"),
    };
    for (name, value) in distribution(&sources) {
        grains.insert(name, value);
    }
    let family = grains.get("os_family").and_then(Value::as_str).unwrap_or_default().to_owned();
    grains.insert("osarch", osarch(&family, cpuarch));
    grains.insert("ps", "ps -efHww");
    grains.insert("transactional", crate::functions::find_program("transactional-update").is_some());
}

/// The texts the names are taken from.
#[derive(Clone, Debug, Default)]
struct Sources {
    os_release: Option<String>,
    lsb_release: Option<String>,
    old_release: Option<String>,
    debian_version: Option<String>,
}

/// The traditional name for the first ten letters of what a distribution calls itself, without spaces and in lower case.
const NAMES: &[(&str, &str)] = &[
    ("alibabaclo", "Alinux"),
    ("almalinux", "AlmaLinux"),
    ("almalinuxk", "AlmaLinux"),
    ("alt", "ALT"),
    ("amazonami", "Amazon"),
    ("antergos", "Antergos"),
    ("arch", "Arch"),
    ("archarm", "Arch ARM"),
    ("chapeau", "Chapeau"),
    ("cloudlinux", "CloudLinux"),
    ("cloudserve", "CloudLinux"),
    ("debian", "Debian"),
    ("enterprise", "OEL"),
    ("fedoraremi", "Fedora"),
    ("gentoobase", "Gentoo"),
    ("korora", "Korora"),
    ("linuxmint", "Mint"),
    ("manjaro", "Manjaro"),
    ("manjarolin", "Manjaro"),
    ("mendel", "Mendel"),
    ("neon", "KDE neon"),
    ("nilrt", "NILinuxRT"),
    ("oracleserv", "OEL"),
    ("photon", "VMware Photon OS"),
    ("pidora", "Fedora"),
    ("poky", "Poky"),
    ("pop", "Pop"),
    ("raspbian", "Raspbian"),
    ("redhatente", "RedHat"),
    ("rocky", "Rocky"),
    ("scientific", "ScientificLinux"),
    ("sles", "SUSE"),
    ("slesexpand", "RES"),
    ("synology", "Synology"),
    ("univention", "Univention"),
    ("virtuozzo", "Virtuozzo"),
    ("void", "Void"),
];

/// Who belongs to a family that has another name than his own.
const FAMILIES: &[(&str, &[&str])] = &[
    ("Arch", &["Antergos", "Arch ARM", "EndeavourOS", "Manjaro", "Manjaro ARM"]),
    (
        "Debian",
        &[
            "AstraLinuxCE",
            "AstraLinuxSE",
            "Cumulus",
            "Deepin",
            "Devuan",
            "GCEL",
            "IDMS",
            "KDE neon",
            "Kali",
            "Linaro",
            "Mendel",
            "Mint",
            "OSMC",
            "Parrot OS",
            "Pop",
            "Raspbian",
            "Trisquel",
            "TurnKey",
            "Ubuntu",
            "Univention",
            "antiX",
            "elementary",
            "elementary OS",
            "neon",
        ],
    ),
    ("Gentoo", &["Funtoo"]),
    ("Mandriva", &["Mandrake"]),
    (
        "RedHat",
        &[
            "ALT",
            "Alinux",
            "AlmaLinux",
            "AlmaLinux Kitten",
            "AlterOS",
            "Amazon",
            "CentOS",
            "CentOS Stream",
            "Chapeau",
            "CloudLinux",
            "FedBerry",
            "Fedora",
            "GoOSe",
            "Korora",
            "OEL",
            "OVS",
            "RED OS",
            "RES",
            "Rocky",
            "Sangoma",
            "Scientific",
            "ScientificLinux",
            "VMware Photon OS",
            "Virtuozzo",
            "XCP",
            "XCP-ng",
            "XenServer",
            "openEuler",
        ],
    ),
    ("Slackware", &["Slamd64"]),
    (
        "Suse",
        &[
            "SLED",
            "SLES",
            "SLES_SAP",
            "SUSE",
            "SUSE  Enterprise Server",
            "SUSE Enterprise Server",
            "alfaLinux",
            "alfaLinux Rise",
            "openSUSE",
            "openSUSE Leap",
            "openSUSE Tumbleweed",
        ],
    ),
];

fn distribution(sources: &Sources) -> Map {
    let mut grains = Map::new();
    let os_release = assignments(sources.os_release.as_deref().unwrap_or_default());
    let has = |key: &str| os_release.get(key).map(String::as_str);
    let name = has("NAME").unwrap_or("Linux").trim();
    let mut lsb = assignments(sources.lsb_release.as_deref().unwrap_or_default());
    let (mut os, mut full_name) = (traditional_name(name, has("ID").unwrap_or("linux")), name.to_owned());
    if !lsb.contains_key("DISTRIB_ID") {
        lsb.insert("DISTRIB_ID".into(), name.to_owned());
        if let Some(version) = has("VERSION_ID") {
            lsb.insert("DISTRIB_RELEASE".into(), version.to_owned());
        }
        if let Some(codename) = has("VERSION_CODENAME").or(has("PRETTY_NAME")) {
            lsb.insert("DISTRIB_CODENAME".into(), codename.to_owned());
        }
        if let Some((vendor, version)) = has("CPE_NAME").and_then(vendor_and_version)
            && matches!(vendor, "suse" | "opensuse")
        {
            os = "SUSE".into();
            match (has("NAME"), has("VERSION")) {
                (Some("openSUSE Leap"), _) => full_name = "Leap".into(),
                (_, Some("Tumbleweed")) => full_name = "Tumbleweed".into(),
                _ => {}
            }
            if vendor == "opensuse" && !version.is_empty() {
                lsb.insert("DISTRIB_RELEASE".into(), version.to_owned());
            }
        }
    }
    let codename = lsb.get("DISTRIB_CODENAME").cloned().unwrap_or_default();
    // These two wrote no minor release into os-release.
    if ["CentOS Linux 7", "CentOS Linux 8"].iter().any(|old| codename.contains(old)) {
        lsb.remove("DISTRIB_RELEASE");
    }
    if matches!(os.as_str(), "Rocky" | "AlmaLinux")
        && let Some(inner) = in_brackets(&codename)
    {
        lsb.insert("DISTRIB_CODENAME".into(), inner.to_owned());
    }
    let mut release = match lsb.get("DISTRIB_RELEASE") {
        Some(release) => release.trim().to_owned(),
        None => other_release(sources),
    };
    let mut codename = lsb.get("DISTRIB_CODENAME").map(|codename| codename.trim().to_owned()).unwrap_or_default();
    if codename.is_empty() || codename.contains("Red Hat") {
        let old = sources.old_release.as_deref().and_then(in_brackets);
        codename = has("VERSION_CODENAME").or(has("UBUNTU_CODENAME")).or(old).unwrap_or_default().to_owned();
    }
    // SL Micro 6.2 calls itself SLES 16 in the usual places.
    if let (Some(product), Some(version)) = (has("SUSE_SUPPORT_PRODUCT"), has("SUSE_SUPPORT_PRODUCT_VERSION")) {
        codename = has("SUSE_PRETTY_NAME").map_or_else(|| format!("{product} {version}"), str::to_owned);
        release = version.to_owned();
        if product == "SUSE Linux Micro" {
            full_name = "SL-Micro".into();
        }
    }
    let family =
        FAMILIES.iter().find(|(_, members)| members.contains(&os.as_str())).map_or(os.as_str(), |(family, _)| family);
    grains.push("os", &os);
    grains.push("os_family", family);
    grains.push("osfullname", &full_name);
    grains.push("oscodename", codename);
    grains.push("osrelease", &release);
    for key in ["ID", "RELEASE", "CODENAME", "DESCRIPTION"] {
        if let Some(value) = lsb.get(&format!("DISTRIB_{key}")) {
            grains.push(format!("lsb_distrib_{}", key.to_lowercase()), value.trim_end());
        }
    }
    if !release.is_empty() {
        add_release(&mut grains, &os, &full_name, &release);
    }
    grains
}

/// `osrelease_info`, `osmajorrelease`, `osfinger`.
fn add_release(grains: &mut Map, os: &str, full_name: &str, release: &str) {
    let part = |text: &str| match text.parse::<i64>() {
        Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => Value::Int(number),
        _ => text.into(),
    };
    let parts: Vec<Value> = release.split('.').map(part).collect();
    let first = parts.first().cloned().unwrap_or_default();
    grains.push("osrelease_info", Value::List(parts));
    if let Value::Int(major) = first {
        grains.push("osmajorrelease", major);
    }
    let name = if matches!(os, "Debian" | "Raspbian" | "AlmaLinux") { os } else { full_name };
    let version = if matches!(os, "Ubuntu" | "Pop" | "NixOS") { release.into() } else { first.key_text() };
    grains.push("osfinger", format!("{name}-{version}"));
}

fn traditional_name(name: &str, id: &str) -> String {
    match (id, name) {
        ("astra", "Astra Linux (Orel)") => return "AstraLinuxCE".into(),
        ("astra", "Astra Linux (Smolensk)") => return "AstraLinuxSE".into(),
        ("pop", "Pop!_OS") => return "Pop".into(),
        _ => {}
    }
    let name = without_linux(name);
    let short: String = name.chars().filter(|c| *c != ' ').flat_map(char::to_lowercase).take(10).collect();
    NAMES.iter().find(|(known, _)| *known == short).map_or(name, |(_, traditional)| (*traditional).to_owned())
}

/// Takes ` Linux` and ` GNU/Linux` out of a name, wherever they follow something that is no letter.
fn without_linux(name: &str) -> String {
    let (mut kept, mut rest) = (String::new(), name);
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        let linux = [&b"gnu/linux"[..], b"linux"]
            .into_iter()
            .find(|word| behind.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        match linux {
            Some(word) if !c.is_alphanumeric() && c != '_' => rest = &behind[word.len()..],
            _ => {
                kept.push(c);
                rest = behind;
            }
        }
    }
    kept.trim().to_owned()
}

/// `KEY=value` lines, with or without quotes.
fn assignments(text: &str) -> HashMap<String, String> {
    let one = |line: &str| {
        let (key, value) = line.trim().split_once('=').filter(|(key, _)| !key.starts_with('#'))?;
        Some((key.to_owned(), split_words(value).join(" ")))
    };
    text.lines().filter_map(one).collect()
}

/// Vendor and version of a `CPE_NAME`, in both of its spellings.
fn vendor_and_version(cpe: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = cpe.split(':').collect();
    match &parts[..] {
        ["cpe", part, vendor, _, version, ..] if part.starts_with('/') => Some((vendor, version)),
        ["cpe", "2.3", _, vendor, _, version, ..] => Some((vendor, version)),
        _ => None,
    }
}

fn in_brackets(text: &str) -> Option<&str> {
    Some(text.split_once('(')?.1.split_once(')')?.0)
}

/// The release of those who do not say it in os-release.
fn other_release(sources: &Sources) -> String {
    let numbers = sources
        .old_release
        .as_deref()
        .and_then(|text| text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())));
    let debian = sources.debian_version.as_deref().map(str::trim);
    numbers.or(debian).unwrap_or_default().to_owned()
}

/// The architecture as the package manager calls it.
fn osarch(family: &str, cpuarch: &str) -> String {
    let asked = match family {
        "Debian" => ask("dpkg", &["--print-architecture"]),
        "RedHat" | "Suse" => ask("rpm", &["--eval", "%{_host_cpu}"]),
        _ => None,
    };
    asked.map(|(_, arch)| arch).filter(|arch| !arch.is_empty()).unwrap_or_else(|| cpuarch.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stock Salt 3008 makes of the same files.
    const DISTRIBUTIONS: &str = include_str!("../../tests/fixtures/distributions.json");

    #[test]
    fn distributions_are_named_as_stock_salt_names_them() {
        let all: Value = serde_json::from_str(DISTRIBUTIONS).unwrap();
        for (name, case) in all.as_map().unwrap() {
            let text = |key| case.get(key).and_then(Value::as_str).map(str::to_owned);
            let sources = Sources {
                os_release: text("os_release"),
                lsb_release: text("lsb"),
                old_release: text("old"),
                debian_version: None,
            };
            let found = Value::Map(distribution(&sources));
            assert_eq!(&found, case.get("grains").unwrap(), "{name:?}");
        }
    }

    #[test]
    fn a_machine_without_release_files_is_still_something() {
        let grains = distribution(&Sources::default());
        assert_eq!(grains.get("os"), Some(&"Linux".into()));
        assert_eq!(grains.get("osrelease_info"), None);
    }

    #[test]
    fn linux_is_taken_out_of_names() {
        for (name, kept) in [
            ("Debian GNU/Linux", "Debian"),
            ("Linux Mint", "Linux Mint"),
            ("Foo-linux Bär", "Foo Bär"),
            ("AlmaLinux", "AlmaLinux"),
        ] {
            assert_eq!(without_linux(name), kept);
        }
    }
}
