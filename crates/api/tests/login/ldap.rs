//! The backend `ldap` against a real OpenLDAP server.

use super::{backends, identity};
use saltern_api::login::{Backends, Refused, Settings, ldap};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::slapd::{ADMIN, ADMIN_PASSWORD, Certificate, Directory, SUFFIX};

const PEOPLE: &str = "\
dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: uid=lena,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: lena
cn: admins
sn: L
userPassword: lena's password

dn: uid=phone,uid=lena,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: phone
cn: Phone
sn: P
userPassword: lena's password

dn: uid=max*,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: max*
cn: Max
sn: M
userPassword: max's password

dn: uid=nopass,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: nopass
cn: No
sn: N

dn: ou=Groups,dc=example,dc=org
objectClass: organizationalUnit
ou: Groups

dn: cn=web,ou=Groups,dc=example,dc=org
objectClass: posixGroup
cn: web
gidNumber: 1
memberUid: lena
memberUid: max*

dn: cn=db,ou=Groups,dc=example,dc=org
objectClass: posixGroup
cn: db
gidNumber: 2
memberUid: lena

dn: cn=admins,ou=Groups,dc=example,dc=org
objectClass: posixGroup
cn: admins
gidNumber: 3
memberUid: somebody

dn: cn=ops,dc=example,dc=org
objectClass: groupOfNames
cn: ops
member: uid=lena,ou=people,dc=example,dc=org
";

const BY_NAME: (&str, &str) = ("binddn", "uid={{ username }},ou=people,dc=example,dc=org");
const BY_SEARCH: [(&str, &str); 3] = [("binddn", ADMIN), ("bindpw", ADMIN_PASSWORD), ("filter", "uid={{ username }}")];

fn ask(port: u16, more: &[(&str, &str)]) -> Backends {
    let port = port.to_string();
    let base = [("server", "localhost"), ("port", &port), ("basedn", SUFFIX)];
    let ldap = ldap::Settings::from_keys(base.into_iter().chain(more.iter().copied())).unwrap();
    backends(Settings { ldap: Some(ldap), ..Settings::default() })
}

#[tokio::test]
async fn people_are_found_by_their_name_or_by_a_search_and_come_with_their_groups() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    for way in [&[BY_NAME][..], &BY_SEARCH] {
        let backends = ask(directory.port(), way);
        let answer = backends.vouch("ldap", "lena", "lena's password").await;
        assert_eq!(answer, identity("lena", "ldap", &["db", "web"]), "{way:?}");
        let wrong = [("lena", "wrong"), ("lena", "max's password"), ("nobody", "lena's password"), ("nopass", "any")];
        for (user, password) in wrong.into_iter().chain([("lena", ""), ("", "lena's password"), ("nopass", "")]) {
            assert_eq!(backends.vouch("ldap", user, password).await, Err(Refused::Denied), "{way:?} {user} {password}");
        }
    }
}

#[tokio::test]
async fn a_name_cannot_change_what_is_asked() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let tricks = [
        "*",
        "len*",
        "lena)(uid=*",
        "*)(objectClass=*",
        "lena,ou=people",
        "lena\\",
        "lena+cn=admins",
        "phone,uid=lena",
        "nobody)(|(uid=lena",
        "max\\2a",
    ];
    for way in [&[BY_NAME][..], &BY_SEARCH] {
        let backends = ask(directory.port(), way);
        for user in tricks {
            let answer = backends.vouch("ldap", user, "lena's password").await;
            assert_eq!(answer, Err(Refused::Denied), "{way:?} {user}");
        }
        // A name that needs escaping is a name like any other.
        let answer = backends.vouch("ldap", "max*", "max's password").await;
        assert_eq!(answer, identity("max*", "ldap", &["web"]), "{way:?}");
        assert_eq!(backends.vouch("ldap", "max*", "lena's password").await, Err(Refused::Denied), "{way:?}");
    }
}

#[tokio::test]
async fn a_filter_that_finds_two_people_lets_in_neither() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let way = [("binddn", ADMIN), ("bindpw", ADMIN_PASSWORD), ("filter", "(|(uid={{ username }})(uid=nopass))")];
    let backends = ask(directory.port(), &way);
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, Err(Refused::Denied));
}

#[tokio::test]
async fn an_account_whose_password_is_wrong_lets_nobody_in() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let backends = ask(directory.port(), &[("binddn", ADMIN), ("bindpw", "wrong"), BY_SEARCH[2]]);
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, Err(Refused::Denied));
}

#[tokio::test]
async fn groups_that_list_entries_are_found_as_in_active_directory() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let active_directory =
        [("activedirectory", "True"), ("accountattributename", "uid"), ("groupclass", "groupOfNames")];
    let backends = ask(directory.port(), &[&BY_SEARCH[..], &active_directory].concat());
    let answer = backends.vouch("ldap", "lena", "lena's password").await;
    assert_eq!(answer, identity("lena", "ldap", &["ops"]));
}

#[tokio::test]
async fn groups_that_a_filter_finds_are_taken_if_they_list_the_person_as_in_freeipa() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let freeipa = [
        ("freeipa", "True"),
        ("group_basedn", SUFFIX),
        ("group_filter", "(|(memberUid={{ username }})(objectClass=groupOfNames))"),
        ("groupattribute", "member"),
    ];
    let backends = ask(directory.port(), &[&BY_SEARCH[..], &freeipa].concat());
    let answer = backends.vouch("ldap", "lena", "lena's password").await;
    assert_eq!(answer, identity("lena", "ldap", &["db", "ops", "web"]));
    assert_eq!(backends.vouch("ldap", "max*", "max's password").await, identity("max*", "ldap", &["web"]));
}

#[tokio::test]
async fn the_name_that_people_give_their_own_entry_is_no_group() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    // The person's own entry is found, whose `cn` is the name of a group that she is not in.
    let own = [("groupou", ""), ("accountattributename", "uid"), ("groupclass", "inetOrgPerson")];
    let backends = ask(directory.port(), &[&BY_SEARCH[..], &own].concat());
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, identity("lena", "ldap", &[]));
}

#[tokio::test]
async fn tls_and_starttls_are_spoken_and_certificates_are_checked() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let Some(directory) = Directory::start(PEOPLE, Some(Certificate { cert: &cert, key: &key })) else { return };
    let scratch = Scratch::new("ldap-ca");
    let trusted = scratch.write("ca.pem", &cert);
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let distrusted = scratch.write("other.pem", stranger.cert.pem());

    for (kind, port) in [("tls", directory.tls_port()), ("starttls", directory.port())] {
        let vouch = async |more: &[(&str, &str)]| {
            let backends = ask(port, &[&[BY_NAME, (kind, "True")], more].concat());
            backends.vouch("ldap", "lena", "lena's password").await
        };
        let expected = identity("lena", "ldap", &["db", "web"]);
        assert_eq!(vouch(&[("cafile", trusted.to_str().unwrap())]).await, expected, "{kind}");
        assert_eq!(vouch(&[("cafile", distrusted.to_str().unwrap())]).await, Err(Refused::Denied), "{kind}");
        assert_eq!(vouch(&[("no_verify", "True")]).await, expected, "{kind}");
    }
}

#[tokio::test]
async fn a_server_without_starttls_is_sent_no_password() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let backends = ask(directory.port(), &[BY_NAME, ("starttls", "True"), ("no_verify", "True")]);
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, Err(Refused::Denied));
}

#[tokio::test]
async fn a_directory_that_is_away_lets_nobody_in() {
    let Some(directory) = Directory::start(PEOPLE, None) else { return };
    let backends = ask(directory.port(), &[BY_NAME]);
    assert!(backends.vouch("ldap", "lena", "lena's password").await.is_ok());
    drop(directory);
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, Err(Refused::Denied));
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_never_answers_is_not_waited_for_longer_than_ten_seconds() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backends = ask(silent.local_addr().unwrap().port(), &[BY_NAME, ("server", "127.0.0.1")]);
    let start = tokio::time::Instant::now();
    assert_eq!(backends.vouch("ldap", "lena", "lena's password").await, Err(Refused::Denied));
    assert_eq!(start.elapsed().as_secs(), 10);
}
