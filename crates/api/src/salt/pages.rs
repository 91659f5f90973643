//! A web application on top of salt-api (SaltGUI), from the folders that `rest_cherrypy` names: its page, and its files.
//!
//! A browser that navigates gets the page; programs get the API, whatever else they accept. Only what is below the folder is
//! served, links out of it are not followed.

use super::Salt;
use super::error::Failure;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use saltern_render::fileserver::{FileRoots, Settings};
use std::path::{Path as FilePath, PathBuf};

/// The largest file that is served.
const LARGEST: usize = 64 << 20;

/// What the page of an application may do: its own files, and the styles its scripts set.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'self'; \
                      form-action 'self'; frame-ancestors 'none'; object-src 'none'";

/// `GET /app` and everything below: always the one page
pub(super) async fn app(State(salt): State<Salt>) -> Result<Response, Failure> {
    match &salt.app.config().http.app {
        Some(page) => show_page(page).await,
        None => Err(Failure::no_such_path()),
    }
}

/// `GET /static/…`
pub(super) async fn file(State(salt): State<Salt>, Path(path): Path<String>) -> Result<Response, Failure> {
    let Some(folder) = salt.app.config().http.static_dir.clone() else { return Err(Failure::no_such_path()) };
    let content = read(folder, path.clone()).await?.ok_or_else(Failure::no_such_path)?;
    Ok(answer(media_type(&path), content))
}

/// Answers with the page where a browser asks for one, at whatever URL.
pub(super) async fn prefer(State(salt): State<Salt>, request: Request, next: Next) -> Response {
    let page = salt.app.config().http.app.as_deref();
    let is_own = ["/app", "/static"].iter().any(|own| request.uri().path().starts_with(own));
    let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
    match page {
        Some(page) if is_look && !is_own && wants_page(request.headers()) => {
            show_page(page).await.unwrap_or_else(IntoResponse::into_response)
        }
        _ => next.run(request).await,
    }
}

/// Whether HTML is named, and not less wanted than JSON; an upgrade never is a page.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (mut html, mut json) = (None, 0.0_f32);
    for range in accepts.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or("").to_ascii_lowercase();
        let q = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
        match kind.as_str() {
            "text/html" => html = Some(q),
            "application/json" => json = q,
            _ => {}
        }
    }
    html.is_some_and(|html| html > 0.0 && html >= json) && !headers.contains_key(header::UPGRADE)
}

async fn show_page(page: &FilePath) -> Result<Response, Failure> {
    let (Some(folder), Some(name)) = (page.parent(), page.file_name().and_then(|name| name.to_str())) else {
        return Err(Failure::no_such_path());
    };
    let content = read(folder.into(), name.to_owned()).await?.ok_or_else(Failure::no_such_path)?;
    Ok(answer("text/html; charset=utf-8", content))
}

fn answer(media_type: &'static str, content: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (headers, content).into_response()
}

/// A file below a folder; nothing if there is none.
async fn read(folder: PathBuf, path: String) -> Result<Option<Bytes>, Failure> {
    const ENV: &str = "static";
    let work = move || {
        let roots = FileRoots::new([(ENV.to_owned(), vec![folder])], Settings::default())?;
        roots.read(ENV, &path, LARGEST)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(found)) => Ok(found.map(|(content, _)| content)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a file of the web application is not served");
            Ok(None)
        }
        Err(_) => Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred")),
    }
}

/// The types that web applications have; browsers are told not to guess others.
fn media_type(path: &str) -> &'static str {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "txt" | "md" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(accept: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
        }
        wants_page(&headers)
    }

    #[test]
    fn browsers_that_navigate_get_the_page_and_programs_do_not() {
        assert!(wants(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"]));
        for program in [&[][..], &["*/*"], &["application/json"], &["application/json, text/plain, */*"]] {
            assert!(!wants(program), "{program:?}");
        }
        assert!(!wants(&["application/json, text/html;q=0.5"]));
    }

    #[test]
    fn an_upgrade_is_no_page() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/html"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        assert!(!wants_page(&headers));
    }

    #[tokio::test]
    async fn only_what_is_below_the_folder_is_served() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("static")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(dir.path().join("static/a.js"), "a").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), dir.path().join("static/link")).unwrap();
        let get = async |path: &str| read(dir.path().join("static"), path.into()).await.unwrap();
        assert_eq!(get("a.js").await.as_deref(), Some(&b"a"[..]));
        for outside in ["../secret", "/../secret", "x/../../secret", "link", "none", ""] {
            assert_eq!(get(outside).await, None, "{outside}");
        }
    }

    #[test]
    fn files_have_the_types_that_browsers_need() {
        assert_eq!(media_type("scripts/a.js"), "text/javascript; charset=utf-8");
        assert_eq!(media_type("a.css"), "text/css; charset=utf-8");
        assert_eq!(media_type("a.b/c"), "application/octet-stream");
    }
}
