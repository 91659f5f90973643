//! A user's crontab, as stock Salt keeps it: what people wrote stays above the mark, what was set from afar stands below it.

use saltern_core::value::{Map, Value};

/// Where the managed part begins. Stock Salt's words, so that a tab can pass from one to the other.
const MARK: &str = "# Lines below here are managed by Salt, do not edit";
const IDENTIFIER: &str = "SALT_CRON_IDENTIFIER";
const NO_IDENTIFIER: &str = "NO ID SET";
const DISABLED: &str = "#DISABLED#";

/// A crontab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tab {
    /// Lines above the mark, untouched
    pre: Vec<String>,
    env: Vec<(String, String)>,
    jobs: Vec<Job>,
    special: Vec<Job>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) when: When,
    pub(super) command: String,
    pub(super) identifier: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) is_commented: bool,
}

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Minute, hour, day of the month, month, day of the week
    At([String; 5]),
    /// `@daily` and the like
    Special(String),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Updated,
    Present,
    Removed,
    Absent,
}

impl Change {
    /// Salt's word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Updated => "updated",
            Self::Present => "present",
            Self::Removed => "removed",
            Self::Absent => "absent",
        }
    }

    /// Whether the tab is another one now.
    pub(super) const fn is_change(self) -> bool {
        matches!(self, Self::New | Self::Updated | Self::Removed)
    }
}

impl Tab {
    /// Reads a crontab.
    pub(super) fn read(text: &str) -> Self {
        let mut tab = Self::default();
        let mut lines = text.lines();
        tab.pre.extend(lines.by_ref().take_while(|line| *line != MARK).map(str::to_owned));
        let (mut comment, mut identifier) = (None::<String>, None);
        for line in lines {
            let (line, is_commented) = line.strip_prefix(DISABLED).map_or((line, false), |line| (line, true));
            let is_env = line.find('=').is_some_and(|at| at > 0 && !line[..at].contains(' '));
            if let Some(rest) = line.strip_prefix('#') {
                let mut text = rest.trim_start_matches(['#', ' ']).to_owned();
                if let Some((before, after)) = text.clone().split_once(IDENTIFIER) {
                    identifier = after.strip_prefix(':').filter(|id| !id.is_empty()).map(str::to_owned);
                    text = before.trim_end().to_owned();
                }
                comment = Some(comment.map_or(text.clone(), |known| format!("{known}\n{text}")));
            } else if line.starts_with('@') {
                let mut words = line.split_whitespace();
                let (Some(special), command) = (words.next(), words.collect::<Vec<_>>().join(" ")) else { continue };
                if !command.is_empty() {
                    let when = When::Special(special.to_owned());
                    tab.special.push(Job {
                        when,
                        command,
                        identifier: identifier.take(),
                        comment: comment.take(),
                        is_commented,
                    });
                }
            } else if is_env {
                tab.env.extend(line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
            } else if let [minute, hour, day, month, weekday, command] = line.splitn(6, ' ').collect::<Vec<_>>()[..] {
                let when = When::At([minute, hour, day, month, weekday].map(str::to_owned));
                let command = command.to_owned();
                tab.jobs.push(Job {
                    when,
                    command,
                    identifier: identifier.take(),
                    comment: comment.take(),
                    is_commented,
                });
            }
        }
        tab
    }

    /// Writes it again.
    pub(super) fn write(&self) -> String {
        let mut text: String = self.pre.iter().map(|line| format!("{line}\n")).collect();
        text += MARK;
        text.push('\n');
        for (name, value) in &self.env {
            let value = if value.is_empty() { "\"\"" } else { value };
            text += &format!("{name}={value}\n");
        }
        for job in self.jobs.iter().chain(&self.special) {
            if job.comment.is_some() || job.identifier.is_some() {
                text.push('#');
                if let Some(comment) = job.comment.as_deref().filter(|comment| !comment.is_empty()) {
                    text += &format!(" {}", comment.trim_end().replace('\n', "\n# "));
                }
                if let Some(identifier) = &job.identifier {
                    text += &format!(" {IDENTIFIER}:{identifier}");
                }
                text.push('\n');
            }
            let off = if job.is_commented { DISABLED } else { "" };
            let when = match &job.when {
                When::At(fields) => fields.join(" "),
                When::Special(special) => special.clone(),
            };
            text += &format!("{off}{when} {}\n", job.command);
        }
        text
    }

    /// The tab in Salt's shape.
    pub(super) fn told(&self) -> Value {
        let jobs = |jobs: &[Job]| Value::list(jobs.iter().map(Job::told));
        let env = |(name, value): &(String, String)| Value::map([("name", name), ("value", value)]);
        Value::map([
            ("pre", Value::list(&self.pre)),
            ("crons", jobs(&self.jobs)),
            ("special", jobs(&self.special)),
            ("env", Value::list(self.env.iter().map(env))),
        ])
    }

    /// Sets a job: the one it replaces goes, the new one comes last. `pick` makes a number of a field that is left to chance.
    pub(super) fn set(&mut self, mut job: Job, mut pick: impl FnMut(u32) -> u32) -> Change {
        let mut change = Change::New;
        let at = |jobs: &[Job]| jobs.iter().position(|known| known.is_same_as(&job.command, job.identifier.as_deref()));
        let (in_jobs, in_special) = (at(&self.jobs), at(&self.special));
        let old = in_jobs.map(|at| &self.jobs[at]).or(in_special.map(|at| &self.special[at])).cloned();
        if let Some(old) = old {
            if let (When::At(new), When::At(known)) = (&mut job.when, &old.when) {
                for (field, known) in new.iter_mut().zip(known) {
                    if field == "random" && known != "*" {
                        field.clone_from(known);
                    }
                }
            }
            job.comment = job.comment.or_else(|| old.comment.clone());
            job.identifier = job.identifier.or_else(|| old.identifier.clone());
            if job == old {
                return Change::Present;
            }
            match (in_jobs, in_special) {
                (Some(at), _) => drop(self.jobs.remove(at)),
                (None, Some(at)) => drop(self.special.remove(at)),
                (None, None) => {}
            }
            change = Change::Updated;
        }
        match &mut job.when {
            When::At(fields) => {
                settle(fields, &mut pick);
                self.jobs.push(job);
            }
            When::Special(_) => self.special.push(job),
        }
        change
    }

    /// Removes a job; fields that are given must be its own.
    pub(super) fn remove(&mut self, command: &str, fields: &[Option<String>; 5], identifier: Option<&str>) -> Change {
        let fits = |job: &Job| {
            let When::At(known) = &job.when else { return false };
            let same = |(wanted, known): (&Option<String>, &String)| match wanted.as_deref() {
                None => true,
                Some("random") => known != "*",
                Some(wanted) => wanted == known,
            };
            job.is_same_as(command, identifier) && fields.iter().zip(known).all(same)
        };
        remove_first(&mut self.jobs, fits)
    }

    /// Removes a job that runs at a special time.
    pub(super) fn remove_special(&mut self, command: &str, special: Option<&str>, identifier: Option<&str>) -> Change {
        let fits = |job: &Job| {
            let is_then = special.is_none_or(|wanted| job.when == When::Special(wanted.to_owned()));
            is_then && job.is_same_as(command, identifier)
        };
        remove_first(&mut self.special, fits)
    }

    /// Sets a variable.
    pub(super) fn set_env(&mut self, name: &str, value: &str) -> Change {
        let entry = (name.to_owned(), value.to_owned());
        match self.env.iter().position(|(known, _)| known == name) {
            Some(at) if self.env[at].1 == value => Change::Present,
            Some(at) => {
                self.env.remove(at);
                self.env.push(entry);
                Change::Updated
            }
            None => {
                self.env.push(entry);
                Change::New
            }
        }
    }

    /// Removes a variable.
    pub(super) fn remove_env(&mut self, name: &str) -> Change {
        remove_first(&mut self.env, |(known, _)| known == name)
    }

    /// The first job with this identifier, or with this command.
    pub(super) fn find(&self, identifier: Option<&str>, command: Option<&str>) -> Option<&Job> {
        self.jobs.iter().chain(&self.special).find(|job| match identifier {
            Some(identifier) => job.identifier.as_deref() == Some(identifier),
            None => command == Some(job.command.as_str()),
        })
    }
}

impl Job {
    /// By identifier where one is given; a job without one is known by its command.
    fn is_same_as(&self, command: &str, identifier: Option<&str>) -> bool {
        let (own, wanted) = (self.identifier.as_deref().unwrap_or(NO_IDENTIFIER), identifier.unwrap_or(NO_IDENTIFIER));
        if own == NO_IDENTIFIER && self.command == command {
            return true;
        }
        own == wanted && own != NO_IDENTIFIER
    }

    pub(super) fn told(&self) -> Value {
        let mut told = Map::new();
        match &self.when {
            When::At(fields) => {
                for (name, value) in ["minute", "hour", "daymonth", "month", "dayweek"].into_iter().zip(fields) {
                    told.push(name, value);
                }
            }
            When::Special(special) => told.push("spec", special),
        }
        told.push("cmd", &self.command);
        told.push("identifier", self.identifier.clone());
        told.push("comment", self.comment.clone());
        told.push("commented", self.is_commented);
        Value::Map(told)
    }
}

/// Fields that are left to chance (`random`, or `2:5` for a range) become numbers.
fn settle(fields: &mut [String; 5], pick: &mut impl FnMut(u32) -> u32) {
    const LOWEST: [u32; 5] = [0, 0, 1, 1, 0];
    let mut highest = [59, 23, 28, 12, 6];
    // The month decides how many days there are, so it comes before the day.
    for at in [0, 1, 3, 4, 2] {
        if at == 2 {
            highest[2] = match fields[3].as_str() {
                "1" | "3" | "5" | "7" | "8" | "10" | "12" => 31,
                "4" | "6" | "9" | "11" => 30,
                _ => 28,
            };
        }
        let range = match fields[at].split_once(':') {
            Some((from, to)) => {
                from.parse().ok().zip(to.parse().ok()).map(|(from, to): (u32, u32)| (from.min(to), from.max(to)))
            }
            None => (fields[at] == "random").then_some((LOWEST[at], highest[at])),
        };
        if let Some((from, to)) = range {
            fields[at] = (from + pick(to - from + 1)).to_string();
        }
    }
}

fn remove_first<T>(entries: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> Change {
    match entries.iter().position(fits) {
        Some(at) => {
            entries.remove(at);
            Change::Removed
        }
        None => Change::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAB: &str = "MAILTO=root\n\
        0 5 * * * by-hand\n\
        # Lines below here are managed by Salt, do not edit\n\
        PATH=/bin:/usr/bin\n\
        # nightly\n\
        # backup SALT_CRON_IDENTIFIER:backup\n\
        0 2 * * * /usr/bin/backup --all\n\
        #DISABLED#*/5 * * * 1-5 poll x=1\n\
        @daily rotate  logs\n";

    fn job(command: &str, fields: [&str; 5]) -> Job {
        Job {
            when: When::At(fields.map(str::to_owned)),
            command: command.into(),
            identifier: None,
            comment: None,
            is_commented: false,
        }
    }

    #[test]
    fn a_tab_is_read_in_salts_shape() {
        let told = Tab::read(TAB).told();
        assert_eq!(told.get("pre"), Some(&Value::list(["MAILTO=root", "0 5 * * * by-hand"])));
        assert_eq!(told.get("env"), Some(&Value::list([Value::map([("name", "PATH"), ("value", "/bin:/usr/bin")])])));
        let crons = told.get("crons").and_then(Value::as_list).unwrap();
        assert_eq!(crons[0].get("cmd"), Some(&"/usr/bin/backup --all".into()));
        assert_eq!(crons[0].get("comment"), Some(&"nightly\nbackup".into()));
        assert_eq!(crons[0].get("identifier"), Some(&"backup".into()));
        assert_eq!((crons[1].get("commented"), crons[1].get("dayweek")), (Some(&true.into()), Some(&"1-5".into())));
        assert_eq!(told.get("special").and_then(Value::as_list).unwrap()[0].get("spec"), Some(&"@daily".into()));
    }

    #[test]
    fn a_tab_that_is_written_reads_the_same() {
        let tab = Tab::read(TAB);
        assert_eq!(Tab::read(&tab.write()), tab);
    }

    #[test]
    fn jobs_are_new_present_or_updated() {
        let mut tab = Tab::read(TAB);
        assert_eq!(tab.set(job("new", ["1", "2", "*", "*", "*"]), |_| 0), Change::New);
        assert_eq!(tab.set(job("new", ["1", "2", "*", "*", "*"]), |_| 0), Change::Present);
        assert_eq!(tab.set(job("new", ["1", "3", "*", "*", "*"]), |_| 0), Change::Updated);
        let named = Job { identifier: Some("backup".into()), ..job("other command", ["0", "2", "*", "*", "*"]) };
        assert_eq!(tab.set(named, |_| 0), Change::Updated);
        assert_eq!(tab.jobs.iter().filter(|job| job.identifier.is_some()).count(), 1);
    }

    #[test]
    fn chance_is_settled_once() {
        let mut tab = Tab::default();
        tab.set(job("x", ["random", "2:4", "random", "2", "*"]), |n| n - 1);
        assert_eq!(tab.jobs[0].when, When::At(["59", "4", "28", "2", "*"].map(str::to_owned)));
        assert_eq!(tab.set(job("x", ["random", "4", "random", "2", "*"]), |_| 0), Change::Present);
    }

    #[test]
    fn jobs_are_removed_by_command_fields_or_identifier() {
        let mut tab = Tab::read(TAB);
        let none = [const { None }; 5];
        assert_eq!(tab.remove("poll x=1", &[Some("7".into()), None, None, None, None], None), Change::Absent);
        assert_eq!(tab.remove("poll x=1", &none, None), Change::Removed);
        assert_eq!(tab.remove("whatever", &none, Some("backup")), Change::Removed);
        assert_eq!(tab.remove("by-hand", &none, None), Change::Absent);
        assert_eq!(tab.remove_special("rotate logs", None, None), Change::Removed);
    }

    #[test]
    fn variables_are_set_and_removed() {
        let mut tab = Tab::read(TAB);
        assert_eq!(tab.set_env("PATH", "/bin:/usr/bin"), Change::Present);
        assert_eq!(tab.set_env("PATH", "/bin"), Change::Updated);
        assert_eq!(tab.set_env("A", ""), Change::New);
        assert!(tab.write().contains("A=\"\"\n"));
        assert_eq!(tab.remove_env("A"), Change::Removed);
        assert_eq!(tab.remove_env("A"), Change::Absent);
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_what_is_above_the_mark_stays(above in "[ -~\n]{0,60}", below in "[ -~\n]{0,80}") {
            let tab = Tab::read(&format!("{above}\n{MARK}\n{below}"));
            prop_assert_eq!(tab.pre.join("\n"), format!("{above}\n").lines().collect::<Vec<_>>().join("\n"));
            prop_assert_eq!(Tab::read(&tab.write()).pre, tab.pre);
        }
    }
}
