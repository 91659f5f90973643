//! The groups that the system knows a user to be in, from wherever it takes them: files, a directory, a domain.
#![expect(unsafe_code, reason = "the system's user database has a C interface and nothing else")]

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;

/// The room for one entry of the database; a group with thousands of members has a long one.
const LARGEST_ENTRY: usize = 1 << 20;
/// The most groups that a person is taken to be in.
const MOST_GROUPS: usize = 4096;

/// The names of a user's groups; none for somebody whom the system does not know.
pub(super) fn of(user: &CStr) -> Vec<String> {
    let Some(own) = own_group(user) else { return Vec::new() };
    ids(user, own).into_iter().filter_map(name).collect()
}

/// A function that fills an entry, with the strings it points to in a buffer, and says where it is, or null.
type Result<T> = *mut T;

/// Reads one entry with a buffer that grows until it fits.
fn entry<T, U>(
    look_up: impl Fn(*mut T, *mut c_char, usize, *mut Result<T>) -> c_int,
    read: impl Fn(&T) -> U,
) -> Option<U> {
    let mut buffer: Vec<c_char> = vec![0; 4096];
    loop {
        let mut entry = MaybeUninit::<T>::uninit();
        let mut found = ptr::null_mut();
        let code = look_up(entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found);
        if code == libc::ERANGE && buffer.len() < LARGEST_ENTRY {
            buffer = vec![0; buffer.len() * 4];
            continue;
        }
        if code != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call succeeded and found an entry, so `entry` is filled; what it points to is in `buffer`.
        return Some(read(unsafe { entry.assume_init_ref() }));
    }
}

fn own_group(user: &CStr) -> Option<libc::gid_t> {
    // SAFETY: the name ends with a NUL, and the buffer has the length that is told.
    let look_up =
        |entry, buffer, length, found| unsafe { libc::getpwnam_r(user.as_ptr(), entry, buffer, length, found) };
    entry(look_up, |entry: &libc::passwd| entry.pw_gid)
}

fn ids(user: &CStr, own: libc::gid_t) -> Vec<libc::gid_t> {
    let mut room = 64;
    loop {
        let mut ids: Vec<libc::gid_t> = vec![0; room];
        let mut count = c_int::try_from(room).unwrap_or(c_int::MAX);
        // SAFETY: the name ends with a NUL, and the list has the length that is told.
        let fits = unsafe { libc::getgrouplist(user.as_ptr(), own, ids.as_mut_ptr(), &mut count) } >= 0;
        if fits || room >= MOST_GROUPS {
            // Where it does not fit, the list is filled as far as it goes.
            ids.truncate(usize::try_from(count).unwrap_or(0));
            return ids;
        }
        room *= 4;
    }
}

fn name(id: libc::gid_t) -> Option<String> {
    // SAFETY: the buffer has the length that is told.
    let look_up = |entry, buffer, length, found| unsafe { libc::getgrgid_r(id, entry, buffer, length, found) };
    entry(look_up, |entry: &libc::group| {
        // SAFETY: an entry's name is a string in the buffer, which is alive.
        unsafe { CStr::from_ptr(entry.gr_name) }.to_str().ok().map(str::to_owned)
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_in_a_group_and_a_stranger_in_none() {
        assert!(!of(c"root").is_empty());
        assert!(of(c"no such user here").is_empty());
    }
}
