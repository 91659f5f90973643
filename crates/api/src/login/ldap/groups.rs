//! The groups of a person, looked up in the three ways Salt has: OpenLDAP's, Active Directory's and FreeIPA's.

use super::super::Error;
use super::super::error::Trouble;
use super::connection::Connection;
use super::dn::{self, first_value};
use super::filter::Filter;
use super::protocol::{Entry, NONE, Scope, Search};
use super::settings::{Settings, wrong};
use super::template::Template;

/// The most groups that a person is taken to be in.
const MOST: u16 = 1000;

/// Where groups are, and how they name their members.
pub(super) struct Groups {
    base: String,
    account: String,
    attribute: String,
    way: Way,
}

enum Way {
    /// Groups that list the person's name, or his own entry, which lists his groups.
    Names(Filter),
    /// Groups that list the name of the person's entry.
    Entries { person: Filter, class: String },
    /// Groups that a filter finds.
    Filter(Filter),
}

impl Groups {
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let account = settings.accountattributename.clone();
        let of_user = |class: &str| {
            let class = Filter::equal("objectClass", Template::literal(class));
            Filter::and(vec![Filter::equal(&account, Template::user()), class])
        };
        let (base, way) = if settings.activedirectory {
            let person = of_user(&settings.persontype);
            (settings.basedn.clone(), Way::Entries { person, class: settings.groupclass.clone() })
        } else if settings.freeipa {
            if settings.group_basedn.is_empty() {
                return Err(wrong("group_basedn", "must be set, since auth.ldap.freeipa is"));
            }
            let filter = Filter::parse(&settings.group_filter).map_err(|problem| wrong("group_filter", &problem))?;
            (settings.group_basedn.clone(), Way::Filter(filter))
        } else if settings.groupou.is_empty() {
            (settings.basedn.clone(), Way::Names(of_user(&settings.groupclass)))
        } else {
            let base = format!("ou={},{}", dn::escape(&settings.groupou), settings.basedn);
            (base, Way::Names(of_user(&settings.groupclass)))
        };
        Ok(Self { base, attribute: settings.groupattribute.clone(), way, account })
    }

    /// The names of the person's groups, each once.
    pub(super) async fn of(&self, user: &str, connection: &mut Connection) -> Result<Vec<String>, Trouble> {
        let attributes = ["cn", &self.account, &self.attribute];
        let mut found = match &self.way {
            Way::Names(filter) => {
                let entries = self.search(connection, filter.encode(user), MOST, &attributes).await?;
                entries.iter().flat_map(|entry| self.named_by(entry, user)).collect::<Vec<_>>()
            }
            Way::Entries { person, class } => {
                let persons = self.search(connection, person.encode(user), 2, &[NONE]).await?;
                let [person] = persons.as_slice() else { return Ok(Vec::new()) };
                let member = Filter::equal("member", Template::literal(&person.dn));
                let class = Filter::equal("objectClass", Template::literal(class));
                let groups = Filter::and(vec![member, class]).encode(user);
                let entries = self.search(connection, groups, MOST, &["cn"]).await?;
                entries.iter().filter_map(|entry| entry.values("cn").next().map(str::to_owned)).collect()
            }
            Way::Filter(filter) => {
                let entries = self.search(connection, filter.encode(user), MOST, &attributes).await?;
                let lists = |entry: &&Entry| {
                    let mut members = entry.values(&self.account).chain(entry.values(&self.attribute));
                    members.any(|member| member == user || first_value(member).as_deref() == Some(user))
                };
                entries.iter().filter(lists).filter_map(|entry| first_value(&entry.dn)).collect()
            }
        };
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// The groups that an entry puts the user into: his own entry those it lists, a group itself. The two are never mixed:
    /// people may choose the `cn` of their own entry, and would choose their groups with it.
    fn named_by(&self, entry: &Entry, user: &str) -> Vec<String> {
        if first_value(&entry.dn).as_deref() == Some(user) {
            return entry.values(&self.attribute).filter_map(first_value).collect();
        }
        let lists = entry.values(&self.account).any(|member| member == user);
        entry.values("cn").next().filter(|_| lists).map(str::to_owned).into_iter().collect()
    }

    async fn search(
        &self,
        connection: &mut Connection,
        filter: Vec<u8>,
        most: u16,
        attributes: &[&str],
    ) -> Result<Vec<Entry>, Trouble> {
        connection.search(&Search { base: &self.base, scope: Scope::Subtree, most, filter, attributes }).await
    }
}
