//! `package_remove`: remove packages, with their configuration if so asked.

use super::packages::{listed, packages};
use super::params::flag;
use super::{ActionType, BadParams, Call, Kind, Param};
use crate::value::Map;

#[derive(Debug)]
pub(super) struct PackageRemove;

impl ActionType for PackageRemove {
    fn name(&self) -> &'static str {
        "package_remove"
    }

    fn title(&self) -> &'static str {
        "Remove packages"
    }

    fn help(&self) -> &'static str {
        "Remove packages where they are installed"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::required("packages", Kind::Names, "the packages"),
                Param::optional("purge", Kind::Flag, "remove their configuration, too"),
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let pkgs = packages(params)?;
        if pkgs.is_empty() {
            return Err(BadParams::Missing("packages"));
        }
        // A version here would be taken for a wish and not be met: the package stays, and nobody is told.
        if pkgs.iter().any(|package| package.as_str().is_none()) {
            return Err(BadParams::Bad { name: "packages", why: "must be names without versions".into() });
        }
        let fun = if flag(params, "purge", false) { "pkg.purge" } else { "pkg.remove" };
        Ok(Call::named(fun, [("pkgs", pkgs.into())]))
    }

    fn describe(&self, params: &Map) -> String {
        let verb = if flag(params, "purge", false) { "purge" } else { "remove" };
        format!("{verb} {}", listed(params))
    }

    fn is_repeatable(&self, _params: &Map) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused};
    use super::*;

    #[test]
    fn packages_are_removed_or_purged() {
        let call = compiled("package_remove", r#"{"packages": "vim,git"}"#);
        assert_eq!((call.funs[0].as_str(), call.kwarg), ("pkg.remove", params(r#"{"pkgs": ["vim", "git"]}"#)));
        assert_eq!(compiled("package_remove", r#"{"packages": "vim", "purge": true}"#).funs, ["pkg.purge"]);
        assert_eq!(PackageRemove.describe(&params(r#"{"packages": "vim", "purge": true}"#)), "purge vim");
    }

    #[test]
    fn nothing_and_versions_are_refused() {
        for bad in ["{}", r#"{"packages": ""}"#, r#"{"packages": "vim=9"}"#] {
            refused("package_remove", bad);
        }
    }
}
