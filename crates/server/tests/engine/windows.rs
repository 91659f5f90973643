//! Maintenance windows: what changes a minion starts inside of them, whatever way it came and however long it took.

mod admission;
mod changes;
mod claims;
mod doors;
mod launches;
mod refresh;
mod rules;

use crate::house::{House, caller};
use crate::ward::typed;
use saltern_core::action::Policy;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::{ActionRequest, CalendarDraft, ScheduleDraft, Strategy, Subject, WindowEdit, WindowsChanged};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// A window that is open now.
const NOW: (i64, i64) = (-HOUR, HOUR);
/// One that is open tomorrow.
const TOMORROW: (i64, i64) = (DAY, DAY + HOUR);

/// A calendar with these events: from and to, in seconds from now, and what they are called.
fn ical(events: &[(i64, i64, &str)]) -> String {
    let mut text = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\n".to_owned();
    for (number, (from, to, summary)) in events.iter().enumerate() {
        let at = |seconds: i64| {
            let at = Timestamp(saltern_server::clock::now().0 + seconds * 1_000_000);
            at.rfc3339().replace(['-', ':'], "")
        };
        text += &format!(
            "BEGIN:VEVENT\r\nUID:{number}\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:{}\r\nDTEND:{}\r\nSUMMARY:{summary}\r\n\
             END:VEVENT\r\n",
            at(*from),
            at(*to)
        );
    }
    text + "END:VCALENDAR\r\n"
}

/// The same without names.
fn times(spans: &[(i64, i64)]) -> String {
    ical(&spans.iter().map(|(from, to)| (*from, *to, "window")).collect::<Vec<_>>())
}

fn id(name: &str) -> MinionId {
    MinionId::new(name).unwrap()
}

fn minions(names: &[&str]) -> Vec<Subject> {
    names.iter().map(|name| Subject::Minion(id(name))).collect()
}

/// Something that changes a minion.
fn patch(ids: &[&str], policy: Policy) -> ActionRequest {
    typed(ids, "function", [("fun", Value::from("cmd.run")), ("arg", Value::list(["true"]))], policy)
}

fn put_calendar(name: &str, ical: String) -> WindowEdit {
    WindowEdit::PutCalendar(CalendarDraft { name: name.into(), ical: Some(ical), ..CalendarDraft::default() })
}

fn put_schedule(name: &str, kind: &str, calendar: Option<&str>) -> WindowEdit {
    WindowEdit::PutSchedule(ScheduleDraft {
        name: name.into(),
        kind: kind.into(),
        calendar: calendar.map(str::to_owned),
        ..ScheduleDraft::default()
    })
}

fn assign(schedule: &str, to: Vec<Subject>) -> WindowEdit {
    WindowEdit::Assign { org: None, schedule: schedule.into(), to }
}

impl House {
    async fn edit(&self, edit: WindowEdit, expected: Option<i64>, strategy: Strategy) -> Result<WindowsChanged, Error> {
        self.app().change_windows(&caller(), edit, expected, strategy).await
    }

    /// A schedule of this kind with a calendar of the same name, for these.
    async fn window_for(&self, name: &str, kind: &str, text: String, to: Vec<Subject>) {
        self.edit(put_calendar(name, text), None, Strategy::Refuse).await.unwrap();
        self.edit(put_schedule(name, kind, Some(name)), None, Strategy::Refuse).await.unwrap();
        self.edit(assign(name, to), None, Strategy::Refuse).await.unwrap();
    }

    /// Other times for a calendar that is there.
    async fn other_times(&self, name: &str, spans: &[(i64, i64)], strategy: Strategy) -> Result<WindowsChanged, Error> {
        let version = self.app().calendar(&caller(), None, name).unwrap().version;
        self.edit(put_calendar(name, times(spans)), Some(version), strategy).await
    }

    async fn is_open(&self, minion: &str) -> bool {
        self.app().windows_of(&caller(), &id(minion), None, 10).await.unwrap().is_open
    }
}

/// The refusal, in words.
fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Conflict(text)) => text,
        other => panic!("not refused by a window: {other:?}"),
    }
}
