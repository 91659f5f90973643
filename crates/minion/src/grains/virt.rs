//! Whether this machine is one, or only made to look like one: `virtual`, `virtual_subtype`.
//!
//! Asked in Salt's order: what systemd has found out, then the firmware, then devices, and at last signs of containers, which
//! count more than whatever they run on. The firmware is read from `/sys`, not through `dmidecode`.

use super::source::{ask, read, read_trimmed};
use saltern_core::value::Map;
use std::path::Path;

/// Adds `virtual` and, where it is known, `virtual_subtype`.
pub(super) fn add(grains: &mut Map) {
    let dmi = |file: &str| read_trimmed(Path::new("/sys/class/dmi/id").join(file)).unwrap_or_default();
    let signs = Signs {
        detected: ask("systemd-detect-virt", &[]).filter(|(is_virtual, _)| *is_virtual).map(|(_, answer)| answer),
        vendor: dmi("sys_vendor"),
        product: dmi("product_name"),
        bios: dmi("bios_vendor"),
        bios_version: dmi("bios_version"),
        pci_vendors: pci_vendors(),
        is_chroot: is_chroot(),
        cpuinfo_is_qemu: read("/proc/cpuinfo").is_some_and(|text| text.contains("QEMU Virtual CPU")),
        xen: xen(),
        openvz: openvz(),
        cgroup: read("/proc/1/cgroup").unwrap_or_default(),
        environment: read("/proc/1/environ").unwrap_or_default(),
    };
    let (kind, subtype) = judge(&signs);
    grains.insert("virtual", kind);
    if let Some(subtype) = subtype {
        grains.insert("virtual_subtype", subtype);
    }
}

/// What the judgement rests on.
#[derive(Default)]
struct Signs {
    detected: Option<String>,
    vendor: String,
    product: String,
    bios: String,
    bios_version: String,
    pci_vendors: Vec<String>,
    is_chroot: bool,
    cpuinfo_is_qemu: bool,
    xen: Option<&'static str>,
    openvz: Option<&'static str>,
    cgroup: String,
    environment: String,
}

fn judge(signs: &Signs) -> (String, Option<String>) {
    let (kind, mut subtype) = signs
        .detected
        .as_deref()
        .and_then(from_systemd)
        .or_else(|| from_firmware(signs))
        .or_else(|| from_devices(signs))
        .unwrap_or(("physical", None));
    let mut kind = kind.to_owned();
    if signs.is_chroot {
        subtype = Some("chroot");
    }
    if let Some(openvz) = signs.openvz {
        kind = openvz.into();
    }
    if let Some(xen) = signs.xen {
        kind = "xen".into();
        subtype = Some(if signs.product == "HVM domU" { "Xen HVM DomU" } else { xen });
    }
    if signs.cpuinfo_is_qemu {
        kind = "kvm".into();
    }
    match signs.product.as_str() {
        product if product.contains("VirtualBox") => kind = "VirtualBox".into(),
        product if product.contains("RHEV Hypervisor") => (kind, subtype) = ("kvm".into(), Some("rhev")),
        product if product.contains("oVirt Node") => (kind, subtype) = ("kvm".into(), Some("ovirt")),
        product if product.contains("Google") => kind = "gce".into(),
        product if product.contains("BHYVE") => kind = "bhyve".into(),
        _ => {}
    }
    let in_cgroup = |part: &str| signs.cgroup.contains(part);
    if in_cgroup(":/lxc/") || signs.environment.contains("container=lxc") {
        (kind, subtype) = ("container".into(), Some("LXC"));
    } else if in_cgroup(":/kubepods/") {
        subtype = Some("kubernetes");
    } else if in_cgroup(":/libpod_parent/") {
        subtype = Some("libpod");
    } else if [":/system.slice/docker", ":/docker/", ":/docker-ce/"].into_iter().any(in_cgroup) {
        (kind, subtype) = ("container".into(), Some("Docker"));
    }
    if subtype.is_some() && kind == "physical" {
        kind = "virtual".into();
    }
    let mut subtype = subtype.map(str::to_owned);
    if matches!(kind.as_str(), "qemu" | "kvm" | "xen" | "amazon") {
        if signs.vendor.contains("Amazon EC2") {
            if kind != "xen" {
                kind = "Nitro".into();
            }
            subtype = Some(format!("Amazon EC2 ({})", signs.product));
        } else if signs.bios_version.contains(".amazon") {
            subtype = Some("Amazon EC2".into());
        } else if signs.vendor.contains("Nutanix") && signs.product.contains("AHV") {
            subtype = Some("Nutanix AHV".into());
        }
    }
    (kind, subtype)
}

type Kind = (&'static str, Option<&'static str>);

fn from_systemd(answer: &str) -> Option<Kind> {
    const AS_THEY_ARE: [&str; 8] = ["qemu", "kvm", "oracle", "xen", "bochs", "chroot", "uml", "systemd-nspawn"];
    const IN_SALTS_WORDS: [(&str, Kind); 6] = [
        ("vmware", ("VMware", None)),
        ("microsoft", ("VirtualPC", None)),
        ("lxc", ("container", Some("LXC"))),
        ("podman", ("container", Some("Podman"))),
        ("docker", ("container", Some("Docker"))),
        ("amazon", ("Nitro", Some("Amazon EC2"))),
    ];
    let same = AS_THEY_ARE.into_iter().find(|word| *word == answer).map(|word| (word, None));
    same.or_else(|| IN_SALTS_WORDS.into_iter().find(|(word, _)| answer.contains(word)).map(|(_, kind)| kind))
}

fn from_firmware(signs: &Signs) -> Option<Kind> {
    let Signs { vendor, product, bios, .. } = signs;
    let anywhere = |word: &str| [vendor, product, bios].into_iter().any(|text| text.contains(word));
    Some(match () {
        () if anywhere("BHYVE") => ("bhyve", None),
        () if vendor.contains("oVirt") => ("kvm", Some("ovirt")),
        () if product.contains("RHEV Hypervisor") => ("kvm", Some("rhev")),
        () if anywhere("VirtualBox") => ("VirtualBox", None),
        () if anywhere("VMware") => ("VMware", None),
        () if vendor.starts_with("Microsoft") && product.contains("Virtual Machine") => ("VirtualPC", None),
        () if anywhere("Parallels Software") => ("Parallels", None),
        () if vendor.contains("Nutanix") && product.contains("AHV") => ("kvm", Some("Nutanix AHV")),
        () if vendor.contains("Google") || bios.contains("SeaBIOS") => ("kvm", None),
        () if [vendor, bios].into_iter().any(|text| text.contains("QEMU") || text.contains("Bochs")) => ("kvm", None),
        () => return None,
    })
}

/// The PCI vendors of virtual hardware.
fn from_devices(signs: &Signs) -> Option<Kind> {
    let has = |vendor: &str| signs.pci_vendors.iter().any(|known| known == vendor);
    match () {
        () if has("0x15ad") => Some(("VMware", None)),
        () if has("0x80ee") => Some(("VirtualBox", None)),
        () if has("0x1af4") || has("0x1234") => Some(("kvm", None)),
        () => None,
    }
}

fn pci_vendors() -> Vec<String> {
    let Ok(devices) = std::fs::read_dir("/sys/bus/pci/devices") else { return Vec::new() };
    devices.flatten().filter_map(|device| read_trimmed(device.path().join("vendor"))).collect()
}

/// Whether our root directory is another one than that of the first process.
fn is_chroot() -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &str| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    matches!((identity("/"), identity("/proc/1/root/.")), (Some(ours), Some(theirs)) if ours != theirs)
}

fn xen() -> Option<&'static str> {
    let is_dir = |path: &str| Path::new(path).is_dir();
    if !(is_dir("/proc/sys/xen") || is_dir("/sys/bus/xen") || is_dir("/proc/xen")) {
        return None;
    }
    let is_host = Path::new("/proc/xen/xsd_kva").is_file();
    match read("/proc/xen/capabilities") {
        _ if is_host => Some("Xen Dom0"),
        Some(capabilities) => Some(if capabilities.contains("control_d") { "Xen Dom0" } else { "Xen PV DomU" }),
        None => is_dir("/sys/bus/xen/drivers/xenconsole").then_some("Xen PV DomU"),
    }
}

fn openvz() -> Option<&'static str> {
    let status = read("/proc/self/status").unwrap_or_default();
    match status.lines().find_map(|line| line.strip_prefix("envID:")).map(str::trim) {
        Some("0") => return Some("openvzhn"),
        Some(_) => return Some("openvzve"),
        None => {}
    }
    match (Path::new("/proc/vz/version").is_file(), Path::new("/proc/vz/veinfo").is_file()) {
        (true, _) => Some("openvzhn"),
        (false, true) => Some("openvzve"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(signs: Signs, kind: &str, subtype: Option<&str>) {
        assert_eq!(judge(&signs), (kind.to_owned(), subtype.map(str::to_owned)));
    }

    #[test]
    fn a_machine_without_signs_is_physical() {
        check(Signs { vendor: "Dell Inc.".into(), ..Signs::default() }, "physical", None);
    }

    #[test]
    fn systemd_is_asked_first() {
        let detected = |answer: &str| Signs { detected: Some(answer.into()), ..Signs::default() };
        check(detected("kvm"), "kvm", None);
        check(detected("vmware"), "VMware", None);
        check(detected("docker"), "container", Some("Docker"));
        check(detected("lxc-libvirt"), "container", Some("LXC"));
    }

    #[test]
    fn firmware_tells_where_systemd_is_not() {
        check(Signs { vendor: "QEMU".into(), ..Signs::default() }, "kvm", None);
        check(
            Signs { vendor: "innotek GmbH".into(), product: "VirtualBox".into(), ..Signs::default() },
            "VirtualBox",
            None,
        );
        check(Signs { pci_vendors: vec!["0x1af4".into()], ..Signs::default() }, "kvm", None);
    }

    #[test]
    fn a_container_counts_more_than_its_host() {
        check(
            Signs { detected: Some("kvm".into()), cgroup: "1:name=x:/docker/abc".into(), ..Signs::default() },
            "container",
            Some("Docker"),
        );
        check(Signs { cgroup: "1:cpu:/kubepods/x".into(), ..Signs::default() }, "virtual", Some("kubernetes"));
    }

    #[test]
    fn clouds_are_told_apart() {
        let nitro = Signs {
            detected: Some("kvm".into()),
            vendor: "Amazon EC2".into(),
            product: "t3.micro".into(),
            ..Signs::default()
        };
        check(nitro, "Nitro", Some("Amazon EC2 (t3.micro)"));
        check(
            Signs { detected: Some("kvm".into()), product: "Google Compute Engine".into(), ..Signs::default() },
            "gce",
            None,
        );
    }
}
