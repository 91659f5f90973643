//! `package_update`: bring packages, or all of them, to their newest version.
//!
//! Named ones go through `pkg.install`: `pkg.upgrade` of Debian's minions ignores names and would update everything.

use super::packages::{REFRESH, have_an_agent, listed, packages};
use super::params::{flag, names};
use super::{ActionType, BadParams, Call, Kind, Param, Restarts};
use crate::value::{Map, Value};

#[derive(Debug)]
pub(super) struct PackageUpdate;

impl ActionType for PackageUpdate {
    fn name(&self) -> &'static str {
        "package_update"
    }

    fn title(&self) -> &'static str {
        "Update packages"
    }

    fn help(&self) -> &'static str {
        "Bring the packages named, or all that are installed, to their newest version"
    }

    fn params(&self) -> &'static [Param] {
        const {
            &[
                Param::optional("packages", Kind::Names, "the packages; none: all that are installed"),
                Param::optional("dist_upgrade", Kind::Flag, "with all: also add and remove packages (apt, zypper)"),
                REFRESH,
            ]
        }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let pkgs = packages(params)?;
        let refresh = Value::from(flag(params, "refresh", true));
        let whole = flag(params, "dist_upgrade", false);
        if pkgs.is_empty() {
            let whole = whole.then_some(("dist_upgrade", true.into()));
            return Ok(Call::named("pkg.upgrade", [("refresh", refresh)].into_iter().chain(whole)));
        }
        if whole {
            return Err(BadParams::Bad { name: "dist_upgrade", why: "updates all packages, not those named".into() });
        }
        let kwarg = [("pkgs", pkgs.into()), ("only_upgrade", true.into()), ("refresh", refresh)];
        Ok(Call::named("pkg.install", kwarg))
    }

    fn describe(&self, params: &Map) -> String {
        if is_all(params) { "update all packages".into() } else { format!("update {}", listed(params)) }
    }

    fn is_repeatable(&self, _params: &Map) -> bool {
        true
    }

    /// The agent may be among all.
    fn restarts(&self, params: &Map) -> Restarts {
        if is_all(params) || have_an_agent(params) { Restarts::Agent } else { Restarts::Nothing }
    }
}

fn is_all(params: &Map) -> bool {
    names(params, "packages").is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused};
    use super::*;

    #[test]
    fn named_packages_are_updated_and_not_newly_installed() {
        let call = compiled("package_update", r#"{"packages": ["vim"], "refresh": false}"#);
        assert_eq!(call.funs, ["pkg.install"]);
        assert_eq!(call.kwarg, params(r#"{"pkgs": ["vim"], "only_upgrade": true, "refresh": false}"#));
    }

    #[test]
    fn no_names_are_all_packages() {
        let call = compiled("package_update", r#"{"packages": []}"#);
        assert_eq!((call.funs[0].as_str(), call.kwarg), ("pkg.upgrade", params(r#"{"refresh": true}"#)));
        let whole = compiled("package_update", r#"{"dist_upgrade": true}"#);
        assert_eq!(whole.kwarg, params(r#"{"refresh": true, "dist_upgrade": true}"#));
        refused("package_update", r#"{"packages": ["vim"], "dist_upgrade": true}"#);
    }

    #[test]
    fn an_update_of_all_may_restart_the_agent() {
        assert_eq!(PackageUpdate.restarts(&Map::new()), Restarts::Agent);
        assert_eq!(PackageUpdate.restarts(&params(r#"{"packages": "vim"}"#)), Restarts::Nothing);
        assert_eq!(PackageUpdate.restarts(&params(r#"{"packages": "venv-salt-minion"}"#)), Restarts::Agent);
    }
}
