//! When things recur: time zones, cron expressions and iCal calendars. Pure: no clock, no I/O; "now" comes in as an argument.

pub mod cron;
pub mod ical;
pub mod zone;
