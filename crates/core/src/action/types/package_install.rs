//! `package_install`: install packages, in a version where one is given.

use super::packages::{REFRESH, have_an_agent, listed, packages};
use super::params::flag;
use super::{ActionType, BadParams, Call, Kind, Param, Restarts};
use crate::value::Map;

#[derive(Debug)]
pub(super) struct PackageInstall;

impl ActionType for PackageInstall {
    fn name(&self) -> &'static str {
        "package_install"
    }

    fn title(&self) -> &'static str {
        "Install packages"
    }

    fn help(&self) -> &'static str {
        "Install packages that are not there, and bring those that are to the newest version"
    }

    fn params(&self) -> &'static [Param] {
        const { &[Param::required("packages", Kind::Names, "the packages, each as name or name=version"), REFRESH] }
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let pkgs = packages(params)?;
        if pkgs.is_empty() {
            return Err(BadParams::Missing("packages"));
        }
        Ok(Call::named("pkg.install", [("pkgs", pkgs.into()), ("refresh", flag(params, "refresh", true).into())]))
    }

    fn describe(&self, params: &Map) -> String {
        format!("install {}", listed(params))
    }

    fn is_repeatable(&self, _params: &Map) -> bool {
        true
    }

    fn restarts(&self, params: &Map) -> Restarts {
        if have_an_agent(params) { Restarts::Agent } else { Restarts::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compiled, params, refused};
    use super::super::{Ends, find};
    use super::*;

    #[test]
    fn packages_are_installed_with_fresh_lists() {
        let call = compiled("package_install", r#"{"packages": ["vim", "git=2.39"]}"#);
        assert_eq!(call.funs, ["pkg.install"]);
        assert_eq!(call.kwarg, params(r#"{"pkgs": ["vim", {"git": "2.39"}], "refresh": true}"#));
    }

    #[test]
    fn installing_nothing_is_refused() {
        for bad in ["{}", r#"{"packages": []}"#, r#"{"packages": " , "}"#, r#"{"packages": null}"#] {
            refused("package_install", bad);
        }
    }

    #[test]
    fn the_agents_own_package_restarts_it() {
        let kind = find("package_install").unwrap();
        let asked = params(r#"{"packages": ["vim", "salt-minion=3008.3"]}"#);
        assert_eq!((kind.restarts(&asked), kind.ends(&asked)), (Restarts::Agent, Ends::ByReturnOrAgentStart));
        assert_eq!(kind.restarts(&params(r#"{"packages": ["vim"]}"#)), Restarts::Nothing);
    }

    #[test]
    fn the_line_names_the_packages() {
        assert_eq!(PackageInstall.describe(&params(r#"{"packages": "vim,git"}"#)), "install vim, git");
    }
}
