//! What the machine is made of: processors, memory, firmware, disks.

use super::source::{read, read_trimmed};
use saltern_core::value::{Map, Value};
use std::path::Path;

/// Adds the grains of the hardware.
pub(super) fn add(grains: &mut Map) {
    if let Some(text) = read("/proc/cpuinfo") {
        add_processors(grains, &text);
    }
    if let Some(text) = read("/proc/meminfo") {
        add_memory(grains, &text);
    }
    add_firmware(grains, Path::new("/sys/class/dmi/id"));
    add_disks(grains, Path::new("/sys/block"));
    if let Some(text) = read("/proc/mdstat") {
        grains.insert("mdadm", raids(&text));
    }
    let efi_variables =
        ["/sys/firmware/efi/efivars", "/sys/firmware/efi/vars"].map(Path::new).into_iter().find(|path| path.exists());
    grains.insert("efi", efi_variables.is_some());
    grains.insert("efi-secure-boot", efi_variables.is_some_and(is_secure_boot));
    grains.insert("fibre_channel_host", Path::new("/sys/class/fc_host").is_dir());
}

/// `num_cpus`, `cpu_model`, `cpu_flags`: each architecture calls them differently.
fn add_processors(grains: &mut Map, text: &str) {
    let (mut count, mut model, mut flags) = (0, "Unknown", Vec::new());
    for line in text.lines() {
        let mut parts = line.split(':').map(str::trim);
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else { continue };
        match key {
            "processor" => count += 1,
            "# processors" => count = value.parse().unwrap_or(count),
            "vendor_id" | "model name" | "cpu" => model = value,
            "Processor" => (model, count) = (value.split('-').next().unwrap_or(value), 1),
            "flags" | "Features" => flags = value.split_whitespace().collect(),
            _ => {}
        }
    }
    grains.insert("num_cpus", count);
    grains.insert("cpu_model", model);
    grains.insert("cpu_flags", Value::list(flags));
}

/// `mem_total` and `swap_total` in MiB.
fn add_memory(grains: &mut Map, text: &str) {
    let total = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        value.and_then(|value| value.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or_default() / 1024
    };
    grains.insert("mem_total", total("MemTotal"));
    grains.insert("swap_total", total("SwapTotal"));
}

fn add_firmware(grains: &mut Map, dmi: &Path) {
    const FILES: [(&str, &str); 8] = [
        ("biosversion", "bios_version"),
        ("biosvendor", "bios_vendor"),
        ("boardname", "board_name"),
        ("productname", "product_name"),
        ("manufacturer", "sys_vendor"),
        ("biosreleasedate", "bios_date"),
        ("uuid", "product_uuid"),
        ("serialnumber", "product_serial"),
    ];
    for (grain, file) in FILES {
        if let Some(text) = read_trimmed(dmi.join(file)) {
            grains.insert(grain, if grain == "uuid" { text.to_lowercase() } else { text });
        }
    }
}

/// `disks` turn, `ssds` do not; what only exists in software is neither.
fn add_disks(grains: &mut Map, block: &Path) {
    let Ok(entries) = std::fs::read_dir(block) else { return };
    let (mut disks, mut ssds) = (Vec::new(), Vec::new());
    for entry in entries.flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|to| to.starts_with("../devices/virtual")) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        match read_trimmed(entry.path().join("queue/rotational")).as_deref() {
            Some("0") => ssds.push(name),
            Some("1") => disks.push(name),
            _ => {}
        }
    }
    disks.sort();
    ssds.sort();
    grains.insert("disks", Value::list(disks));
    grains.insert("ssds", Value::list(ssds));
}

/// The names in `/proc/mdstat`.
fn raids(text: &str) -> Value {
    let is_device = |line: &&str| !line.starts_with("Personalities : ") && !line.starts_with("unused devices:");
    let mut names: Vec<&str> =
        text.lines().filter(is_device).filter_map(|line| Some(line.split_once(" : ")?.0)).collect();
    names.sort_unstable();
    names.dedup();
    Value::list(names)
}

/// The last byte of the firmware's variable says so.
fn is_secure_boot(variables: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(variables) else { return false };
    let path = |path: std::path::PathBuf| if variables.ends_with("efivars") { path } else { path.join("data") };
    let found: Vec<_> =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("SecureBoot-")).collect();
    match &found[..] {
        [one] => std::fs::read(path(one.path())).is_ok_and(|bytes| bytes.last() == Some(&1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processors(text: &str) -> (i64, String, usize) {
        let mut grains = Map::new();
        add_processors(&mut grains, text);
        let flags = grains.get("cpu_flags").and_then(Value::as_list).unwrap().len();
        (
            grains.get("num_cpus").unwrap().as_i64().unwrap(),
            grains.get("cpu_model").unwrap().as_str().unwrap().to_owned(),
            flags,
        )
    }

    #[test]
    fn processors_of_each_architecture_are_counted() {
        let x86 = "processor\t: 0\n\
            vendor_id\t: GenuineIntel\n\
            model name\t: Xeon\n\
            flags\t\t: fpu vme\n\
            \n\
            processor\t: 1\n\
            model name\t: Xeon\n\
            flags\t\t: fpu vme\n";
        assert_eq!(processors(x86), (2, "Xeon".into(), 2));
        assert_eq!(processors("vendor_id       : IBM/S390\n# processors    : 2\n"), (2, "IBM/S390".into(), 0));
        assert_eq!(
            processors("Processor\t: ARMv6-compatible processor rev 7 (v6l)\nFeatures\t: swp half\n"),
            (1, "ARMv6".into(), 2)
        );
        assert_eq!(
            processors("processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n").1,
            "POWER9 (architected), altivec supported"
        );
    }

    #[test]
    fn memory_is_told_in_mebibytes() {
        let mut grains = Map::new();
        add_memory(&mut grains, "MemTotal:       24684076 kB\nMemFree: 1 kB\nSwapTotal:       2097148 kB\n");
        assert_eq!(
            (grains.get("mem_total"), grains.get("swap_total")),
            (Some(&Value::Int(24105)), Some(&Value::Int(2047)))
        );
    }

    #[test]
    fn raids_are_named() {
        let text = "Personalities : [raid1]\nmd1 : active raid1 sdb2[1]\n      1 blocks\n\nmd0 : active raid1 sda1[0]\nunused devices: <none>\n";
        assert_eq!(raids(text), Value::list(["md0", "md1"]));
    }

    #[test]
    fn firmware_that_cannot_be_read_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("product_uuid"), "4C4C4544-0042\n").unwrap();
        std::fs::write(dir.path().join("sys_vendor"), "Dell Inc.\n").unwrap();
        let mut grains = Map::new();
        add_firmware(&mut grains, dir.path());
        assert_eq!(Value::Map(grains), Value::map([("uuid", "4c4c4544-0042"), ("manufacturer", "Dell Inc.")]));
    }
}
