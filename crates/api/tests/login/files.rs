//! The backend `file` with files as `htpasswd` writes them, and with files that change.

use super::{backends, identity};
use saltern_api::login::{Backends, Refused, Settings, file};
use saltern_testkit::scratch::Scratch;

fn with_file(scratch: &Scratch, content: &str, filetype: &str) -> Backends {
    let path = scratch.write("users", content);
    let options = [("^filename", path.to_str().unwrap()), ("^filetype", filetype)];
    backends(Settings { file: Some(file::Settings::from_options(options).unwrap()), ..Settings::default() })
}

#[tokio::test]
async fn an_htpasswd_file_lets_in_whom_apache_would() {
    let scratch = Scratch::new("login");
    let content = "bea:$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe\n\
                   mia:$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/\n\
                   sam:{SHA}qZk+NkcGgWq6PiVxeFDCbJzQ2J0=\n\
                   old:rqXexS6ZhobKA\n";
    let backends = with_file(&scratch, content, "htpasswd");
    for (user, password) in [("bea", "password"), ("mia", "myPassword"), ("sam", "abc")] {
        assert_eq!(backends.vouch("file", user, password).await, identity(user, "file", &[]), "{user}");
        assert_eq!(backends.vouch("file", user, "another").await, Err(Refused::Denied), "{user}");
    }
    assert_eq!(backends.vouch("file", "old", "myPassword").await, Err(Refused::Denied));
}

#[tokio::test]
async fn a_change_of_the_file_counts_at_once() {
    let scratch = Scratch::new("login");
    let backends = with_file(&scratch, "gene:OceanMan\n", "text");
    assert!(backends.vouch("file", "gene", "OceanMan").await.is_ok());
    scratch.write("users", "gene:WaterMan\n");
    assert_eq!(backends.vouch("file", "gene", "OceanMan").await, Err(Refused::Denied));
    assert!(backends.vouch("file", "gene", "WaterMan").await.is_ok());
    std::fs::remove_file(scratch.path().join("users")).unwrap();
    assert_eq!(backends.vouch("file", "gene", "WaterMan").await, Err(Refused::Denied));
}
