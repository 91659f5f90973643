//! Calendars that come from elsewhere are read anew from time to time. What was known holds until something better has come.

use super::timetable::LIMITS;
use crate::master::{Master, entry};
use crate::{Error, clock};
use futures_util::StreamExt;
use saltern_calendar::ical;
use saltern_calendar::zone::Zone;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{Calendar, Refresh};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Least time between two refreshes, in seconds.
pub(crate) const LEAST_REFRESH: i64 = 300;
/// How often it is looked whether one is due.
const LOOK: Duration = Duration::from_secs(5);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most that are read at once.
const AT_ONCE: usize = 4;
/// Bytes that the calendars of an organisation may have together: they are held in memory.
const MOST_OF_ORG: usize = 50_000_000;

impl Master {
    /// Reads calendars anew when it is time. Runs until the server stops.
    pub(crate) async fn keep_calendars(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        // Not every attempt shows in what is known: only those that changed something.
        let mut tried: HashMap<(String, String), Timestamp> = HashMap::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = clock::now();
            if !self.engine.is_first(now) {
                continue;
            }
            let snapshot = self.windows.snapshot();
            let mut due = Vec::new();
            for calendar in &snapshot.data.calendars {
                let place = (calendar.org.clone(), calendar.name.clone());
                if is_due(calendar, tried.get(&place).copied(), now) {
                    tried.insert(place, now);
                    due.push(calendar.clone());
                }
            }
            let master = &self;
            let refreshed = futures_util::stream::iter(due).for_each_concurrent(AT_ONCE, |calendar| async move {
                if let Err(error) = master.refresh_by_itself(&calendar).await {
                    tracing::warn!(calendar = calendar.name, %error, "what came of reading a calendar could not be noted");
                }
            });
            tokio::select! {
                () = stop.cancelled() => return,
                () = refreshed => {}
            }
        }
    }

    async fn refresh_by_itself(self: &Arc<Self>, calendar: &Calendar) -> Result<(), Error> {
        let read = self.fetch_calendar(calendar).await;
        if self.note_refresh(calendar, read).await? {
            self.reread_windows().await?;
        }
        Ok(())
    }

    /// Notes what came of reading a calendar; tells whether it is another one now. Who looks after it is told of a failure.
    pub(crate) async fn note_refresh(
        &self,
        calendar: &Calendar,
        outcome: Result<String, String>,
    ) -> Result<bool, Error> {
        let at = clock::now();
        let events = match &outcome {
            Ok(_) => Vec::new(),
            Err(why) => {
                tracing::warn!(calendar = calendar.name, org = calendar.org, why, "a calendar could not be read anew");
                let body = Value::map([
                    ("org", Value::from(calendar.org.as_str())),
                    ("calendar", calendar.name.as_str().into()),
                    ("error", why.as_str().into()),
                    ("refreshed", calendar.refreshed.map_or(Value::Nil, |at| at.rfc3339().into())),
                ]);
                vec![entry(at, "saltern/notification/calendar".into(), body, None, None)]
            }
        };
        let (org, name) = (calendar.org.clone(), calendar.name.clone());
        let url = calendar.url.clone().unwrap_or_default();
        Ok(self.store.note_refresh(Refresh { org, name, url, outcome, at, events }).await?)
    }

    /// The text of a calendar from where it comes from, if that is one.
    pub(crate) async fn fetch_calendar(&self, calendar: &Calendar) -> Result<String, String> {
        let url = calendar.url.as_deref().ok_or_else(|| "it has no URL".to_owned())?;
        let text = self.windows.client.get("calendar", url, LIMITS.bytes, PATIENCE).await;
        let text = text.map_err(|failure| failure.to_string())?;
        self.check_calendar(calendar, text).await
    }

    /// Whether a text is one that this calendar can be; gives it back.
    pub(crate) async fn check_calendar(&self, calendar: &Calendar, text: String) -> Result<String, String> {
        let snapshot = self.windows.snapshot();
        let others = snapshot.data.calendars.iter().filter(|one| one.org == calendar.org && one.name != calendar.name);
        if others.map(|one| one.ical.len()).sum::<usize>() + text.len() > MOST_OF_ORG {
            let most = MOST_OF_ORG / 1_000_000;
            return Err(format!("the calendars of an organisation may have {most} MB together, and it would be more"));
        }
        readable(text, calendar.zone.clone()).await
    }
}

/// Whether a text is a calendar that can be used; gives it back.
async fn readable(text: String, zone: String) -> Result<String, String> {
    let checked = tokio::task::spawn_blocking(move || {
        let zone = Zone::parse(&zone).map_err(|error| error.to_string())?;
        let calendar = ical::Calendar::parse_in(&text, zone, &LIMITS).map_err(|error| error.to_string())?;
        // What is too much to be expanded is refused now, and not found closed later.
        super::timetable::Timetable::new(Ok(Arc::new(calendar)), zone, None, clock::now())
            .problem()
            .map_or(Ok(()), |problem| Err(problem.to_owned()))?;
        Ok(text)
    });
    checked.await.map_err(|_| "the calendar could not be read".to_owned())?
}

fn is_due(calendar: &Calendar, tried: Option<Timestamp>, now: Timestamp) -> bool {
    let (Some(_), Some(refresh)) = (&calendar.url, calendar.refresh) else { return false };
    let every = Duration::from_secs(u64::try_from(refresh.max(LEAST_REFRESH)).unwrap_or_default());
    // Whatever clock was put back since: it is not waited for.
    let last = calendar.tried.max(calendar.refreshed).max(tried).filter(|last| *last <= now);
    last.is_none_or(|last| now.since(last) >= every)
}
