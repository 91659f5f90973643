//! Calendars as JSON: iCal texts that maintenance windows are made of.

use super::Time;
use crate::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Calendars, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarList {
    /// The calendars
    pub calendars: Vec<Calendar>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A calendar in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// Its name
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// Where it is read from; only admins see it
    pub url: Option<String>,
    /// The time zone of what names none
    pub zone: String,
    /// After how many seconds it is read anew; nothing: when somebody asks for it
    pub refresh: Option<i64>,
    /// When it was last read
    pub refreshed: Option<Time>,
    /// When that was last tried
    pub tried: Option<Time>,
    /// Why the last try has failed; what was known before holds
    pub error: Option<String>,
    /// How long its text is, in bytes
    pub size: usize,
    /// Since when
    pub created: Time,
    /// When it was last changed
    pub changed: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// A calendar with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarDetail {
    /// What a list shows
    #[serde(flatten)]
    pub calendar: Calendar,
    /// Its text
    pub ical: String,
}

/// A calendar to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCalendar {
    /// Its name: letters, digits and `- _ . @`
    #[schema(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,63}$")]
    pub name: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Its text; nothing: what the URL leads to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5_000_000)]
    pub ical: Option<String>,
    /// Where it is read from: a URL of HTTP or HTTPS
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The time zone of what names none, by its IANA name; nothing: UTC
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// After how many seconds it is read anew; nothing: when somebody asks for it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 300)]
    pub refresh: Option<i64>,
}

/// What a calendar is. A text that is left out stays, or is read from the URL if that is another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CalendarContent {
    /// Its text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5_000_000)]
    pub ical: Option<String>,
    /// Where it is read from: a URL of HTTP or HTTPS
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The time zone of what names none, by its IANA name; nothing: UTC
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// After how many seconds it is read anew; nothing: when somebody asks for it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 300)]
    pub refresh: Option<i64>,
}

impl CalendarContent {
    /// The domain's draft of that name.
    pub(crate) fn read(self, name: String, org: Option<String>) -> app::CalendarDraft {
        let Self { ical, url, zone, refresh } = self;
        app::CalendarDraft { org, name, ical, url, zone: zone.unwrap_or_default(), refresh }
    }
}

impl NewCalendar {
    /// The domain's draft.
    pub(crate) fn read(self) -> app::CalendarDraft {
        let Self { name, org, ical, url, zone, refresh } = self;
        CalendarContent { ical, url, zone, refresh }.read(name, org)
    }
}

impl From<app::Calendar> for CalendarDetail {
    fn from(calendar: app::Calendar) -> Self {
        let shown = Calendar {
            name: calendar.name,
            org: calendar.org,
            url: calendar.url,
            zone: calendar.zone,
            refresh: calendar.refresh,
            refreshed: calendar.refreshed.map(Into::into),
            tried: calendar.tried.map(Into::into),
            error: calendar.error,
            size: calendar.ical.len(),
            created: calendar.created.into(),
            changed: calendar.changed.into(),
            version: calendar.version,
        };
        Self { calendar: shown, ical: calendar.ical }
    }
}

impl From<app::Calendar> for Calendar {
    fn from(calendar: app::Calendar) -> Self {
        CalendarDetail::from(calendar).calendar
    }
}
