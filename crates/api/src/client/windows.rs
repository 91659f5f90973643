//! What a client can ask about maintenance windows. `org` is the organisation; nothing: one's own.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{
    Calendar, CalendarContent, CalendarDetail, CalendarList, Maintenance, MaintenanceList, MaintenanceMode,
    MinionWindows, NewCalendar, NewSchedule, Schedule, ScheduleContent, ScheduleList, Strategy, Subjects, TouchedList,
    TouchedRun, WindowChange, WindowsChanged,
};
use hyper::Method;

/// What a feed is to tell of.
#[derive(Clone, Debug, Default)]
pub struct FeedQuery {
    /// Only the windows of this schedule
    pub schedule: Option<String>,
    /// Only the windows of this minion
    pub minion: Option<String>,
    /// Without what recurs
    pub windows_only: bool,
}

impl Client {
    /// The calendars.
    pub async fn calendars(&self, org: Option<&str>) -> Result<Vec<Calendar>, ClientError> {
        self.pages::<CalendarList>("/api/v1/calendars", Query::new().add("org", org)).await
    }

    /// One calendar, with its text.
    pub async fn calendar(&self, org: Option<&str>, name: &str) -> Result<CalendarDetail, ClientError> {
        self.get(&path(CALENDARS, name, "", org, None)).await
    }

    /// Makes a calendar.
    pub async fn create_calendar(&self, calendar: &NewCalendar) -> Result<WindowsChanged, ClientError> {
        self.create("/api/v1/calendars", calendar).await
    }

    /// Says what a calendar is that is still at that version.
    pub async fn put_calendar(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
        strategy: Strategy,
        content: &CalendarContent,
    ) -> Result<WindowsChanged, ClientError> {
        self.change(Method::PUT, &path(CALENDARS, name, "", org, Some(strategy)), version, content).await
    }

    /// Removes a calendar that is still at that version.
    pub async fn delete_calendar(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
        strategy: Strategy,
    ) -> Result<WindowsChanged, ClientError> {
        self.change(Method::DELETE, &path(CALENDARS, name, "", org, Some(strategy)), version, &()).await
    }

    /// Has a calendar read anew, now.
    pub async fn refresh_calendar(
        &self,
        org: Option<&str>,
        name: &str,
        strategy: Strategy,
    ) -> Result<WindowsChanged, ClientError> {
        self.send(Method::POST, &path(CALENDARS, name, "/refresh", org, Some(strategy)), &()).await
    }

    /// The schedules.
    pub async fn schedules(&self, org: Option<&str>) -> Result<Vec<Schedule>, ClientError> {
        self.pages::<ScheduleList>("/api/v1/schedules", Query::new().add("org", org)).await
    }

    /// One schedule.
    pub async fn schedule(&self, org: Option<&str>, name: &str) -> Result<Schedule, ClientError> {
        self.get(&path(SCHEDULES, name, "", org, None)).await
    }

    /// Makes a schedule.
    pub async fn create_schedule(&self, schedule: &NewSchedule) -> Result<WindowsChanged, ClientError> {
        self.create("/api/v1/schedules", schedule).await
    }

    /// Says what a schedule is that is still at that version.
    pub async fn put_schedule(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
        strategy: Strategy,
        content: &ScheduleContent,
    ) -> Result<WindowsChanged, ClientError> {
        self.change(Method::PUT, &path(SCHEDULES, name, "", org, Some(strategy)), version, content).await
    }

    /// Removes a schedule that is still at that version.
    pub async fn delete_schedule(
        &self,
        org: Option<&str>,
        name: &str,
        version: i64,
        strategy: Strategy,
    ) -> Result<WindowsChanged, ClientError> {
        self.change(Method::DELETE, &path(SCHEDULES, name, "", org, Some(strategy)), version, &()).await
    }

    /// Assigns a schedule.
    pub async fn assign_schedule(
        &self,
        org: Option<&str>,
        name: &str,
        strategy: Strategy,
        to: &Subjects,
    ) -> Result<WindowsChanged, ClientError> {
        self.send(Method::POST, &path(SCHEDULES, name, "/assignments", org, Some(strategy)), to).await
    }

    /// Takes assignments back.
    pub async fn unassign_schedule(
        &self,
        org: Option<&str>,
        name: &str,
        strategy: Strategy,
        from: &Subjects,
    ) -> Result<WindowsChanged, ClientError> {
        self.send(Method::POST, &path(SCHEDULES, name, "/assignments/remove", org, Some(strategy)), from).await
    }

    /// The waiting runs that a change would touch.
    pub async fn preview_windows(&self, change: &WindowChange) -> Result<Vec<TouchedRun>, ClientError> {
        let list: TouchedList = self.send(Method::POST, "/api/v1/windows/preview", change).await?;
        Ok(list.touched)
    }

    /// How a minion stands, and its next windows.
    pub async fn windows_of(&self, minion: &str, limit: usize) -> Result<MinionWindows, ClientError> {
        let query = Query::new().add("limit", Some(limit));
        self.get(&query.onto(&format!("/api/v1/minions/{}/windows", escape(minion)))).await
    }

    /// The minions that are in maintenance by hand.
    pub async fn maintenance(&self) -> Result<Vec<MaintenanceMode>, ClientError> {
        let list: MaintenanceList = self.get("/api/v1/windows/maintenance").await?;
        Ok(list.maintenance)
    }

    /// Puts a minion into maintenance.
    pub async fn start_maintenance(&self, minion: &str, maintenance: &Maintenance) -> Result<(), ClientError> {
        self.tell(Method::PUT, &format!("/api/v1/minions/{}/maintenance", escape(minion)), maintenance).await
    }

    /// Leaves a minion to its schedules again.
    pub async fn end_maintenance(&self, minion: &str) -> Result<(), ClientError> {
        self.remove(&format!("/api/v1/minions/{}/maintenance", escape(minion)), None).await
    }

    /// Windows and what recurs, as an iCal text.
    pub async fn feed(&self, query: &FeedQuery) -> Result<String, ClientError> {
        let query = Query::new()
            .add("schedule", query.schedule.as_ref())
            .add("minion", query.minion.as_ref())
            .add("windows_only", query.windows_only.then_some(true));
        self.text(&query.onto("/api/v1/windows/feed.ics")).await
    }
}

const CALENDARS: &str = "calendars";
const SCHEDULES: &str = "schedules";

impl Page for CalendarList {
    type Item = Calendar;

    fn split(self) -> (Vec<Calendar>, Option<String>) {
        (self.calendars, self.next)
    }
}

impl Page for ScheduleList {
    type Item = Schedule;

    fn split(self) -> (Vec<Schedule>, Option<String>) {
        (self.schedules, self.next)
    }
}

fn path(what: &str, name: &str, more: &str, org: Option<&str>, strategy: Option<Strategy>) -> String {
    let query = Query::new().add("org", org).add("strategy", strategy.map(Strategy::as_str));
    query.onto(&format!("/api/v1/{what}/{}{more}", escape(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schedules_may_have_blanks() {
        assert_eq!(
            path(SCHEDULES, "SAP Window", "/assignments", Some("north"), Some(Strategy::Next)),
            "/api/v1/schedules/SAP%20Window/assignments?org=north&strategy=next"
        );
    }
}
