//! Linux-PAM's C interface, behind one function that cannot be misused.
//!
//! How the `unsafe` below stays sound: the library is never unloaded, so its functions stay where they are; a transaction
//! lives within one call of [`Library::authenticate`] on one thread, and so does everything it points to; every answer given
//! to the library is allocated by the C library, since it frees them.
#![expect(unsafe_code, reason = "PAM has a C interface and nothing else")]

use super::super::Error;
use super::super::error::Trouble;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

const SONAME: &str = "libpam.so.0";

const SUCCESS: c_int = 0;
const CONVERSATION_FAILED: c_int = 19;
/// Results that mean no: permission denied, wrong password, insufficient credentials, unknown user, too many tries, password
/// to be changed first, account expired. All others mean that PAM could not tell.
const NO: [c_int; 7] = [6, 7, 8, 10, 11, 12, 13];

/// Modules are to say nothing, and to take no empty password.
const FLAGS: c_int = 0x8000 | 0x0001;
const ITEM_FAIL_DELAY: c_int = 10;
const PROMPT_HIDDEN: c_int = 1;
const PROMPT_SHOWN: c_int = 2;
/// The most messages that the library sends in one go.
const MOST_MESSAGES: usize = 32;

/// A transaction; only the library looks inside.
#[repr(C)]
struct Handle {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Message {
    style: c_int,
    text: *const c_char,
}

#[repr(C)]
struct Response {
    text: *mut c_char,
    code: c_int,
}

type Converse = unsafe extern "C" fn(c_int, *mut *const Message, *mut *mut Response, *mut c_void) -> c_int;

#[repr(C)]
struct Conversation {
    converse: Converse,
    data: *mut c_void,
}

type Start = unsafe extern "C" fn(*const c_char, *const c_char, *const Conversation, *mut *mut Handle) -> c_int;
type StartIn =
    unsafe extern "C" fn(*const c_char, *const c_char, *const Conversation, *const c_char, *mut *mut Handle) -> c_int;
type Step = unsafe extern "C" fn(*mut Handle, c_int) -> c_int;
type SetItem = unsafe extern "C" fn(*mut Handle, c_int, *const c_void) -> c_int;
type Explain = unsafe extern "C" fn(*mut Handle, c_int) -> *const c_char;

/// The functions of the loaded library.
pub(super) struct Library {
    start: Start,
    start_in: Option<StartIn>,
    authenticate: Step,
    check_account: Step,
    end: Step,
    set_item: SetItem,
    explain: Explain,
}

/// What the conversation answers with.
struct Answers<'a> {
    user: &'a CStr,
    password: &'a CStr,
}

impl Library {
    /// The system's library, loaded by the first call and kept for as long as the process lives: modules may leave threads
    /// and handlers behind that point into it.
    pub(super) fn load() -> Result<&'static Self, Error> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library);
        }
        let library = Self::open().map_err(Error::NoPam)?;
        Ok(LOADED.get_or_init(|| library))
    }

    fn open() -> Result<Self, libloading::Error> {
        // SAFETY: loading runs the initialisers of the system's own PAM library, which have no demands; the signatures are
        // those of its headers, and since the library is leaked its functions outlive every use.
        unsafe {
            let library: &'static libloading::Library = Box::leak(Box::new(libloading::Library::new(SONAME)?));
            Ok(Self {
                start: *library.get::<Start>("pam_start")?,
                start_in: library.get::<StartIn>("pam_start_confdir").ok().map(|symbol| *symbol),
                authenticate: *library.get::<Step>("pam_authenticate")?,
                check_account: *library.get::<Step>("pam_acct_mgmt")?,
                end: *library.get::<Step>("pam_end")?,
                set_item: *library.get::<SetItem>("pam_set_item")?,
                explain: *library.get::<Explain>("pam_strerror")?,
            })
        }
    }

    /// Whether rules can be read from another folder than the system's.
    pub(super) fn knows_confdir(&self) -> bool {
        self.start_in.is_some()
    }

    /// Whether the password is the user's and the account may be used now.
    pub(super) fn authenticate(
        &self,
        service: &CStr,
        confdir: Option<&CStr>,
        user: &CStr,
        password: &CStr,
    ) -> Result<bool, Trouble> {
        let answers = Answers { user, password };
        let conversation = Conversation { converse, data: ptr::from_ref(&answers).cast_mut().cast() };
        let mut handle: *mut Handle = ptr::null_mut();
        // SAFETY: all strings end with a NUL and, like `answers` and `conversation`, outlive the transaction, which `end`
        // closes before this function returns; a transaction that did not start has no handle and is not used.
        unsafe {
            let (service, user) = (service.as_ptr(), user.as_ptr());
            let started = match (confdir, self.start_in) {
                (Some(folder), Some(start)) => start(service, user, &conversation, folder.as_ptr(), &mut handle),
                _ => (self.start)(service, user, &conversation, &mut handle),
            };
            if started != SUCCESS || handle.is_null() {
                return Err(self.trouble(handle, started));
            }
            // PAM would sleep on a refusal and keep the thread; the gate does the waiting for all backends alike.
            let delay: unsafe extern "C" fn(c_int, c_uint, *mut c_void) = do_not_sleep;
            (self.set_item)(handle, ITEM_FAIL_DELAY, delay as *const c_void);
            let mut result = (self.authenticate)(handle, FLAGS);
            if result == SUCCESS {
                result = (self.check_account)(handle, FLAGS);
            }
            let verdict = match result {
                SUCCESS => Ok(true),
                no if NO.contains(&no) => Ok(false),
                other => Err(self.trouble(handle, other)),
            };
            (self.end)(handle, result);
            verdict
        }
    }

    fn trouble(&self, handle: *mut Handle, code: c_int) -> Trouble {
        // SAFETY: the library answers every code with text of its own that stays, and does not look at the handle.
        let text = unsafe {
            let text = (self.explain)(handle, code);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Trouble::new(format!("PAM says: {text} ({code})"))
    }
}

/// Answers what modules ask: hidden input is the password, shown input the name; what they tell is not for us.
unsafe extern "C" fn converse(
    count: c_int,
    messages: *mut *const Message,
    responses: *mut *mut Response,
    data: *mut c_void,
) -> c_int {
    let count = match usize::try_from(count) {
        Ok(count @ 1..=MOST_MESSAGES) => count,
        _ => return CONVERSATION_FAILED,
    };
    if messages.is_null() || responses.is_null() || data.is_null() {
        return CONVERSATION_FAILED;
    }
    // SAFETY: `data` is the `Answers` that `authenticate` keeps alive; `messages` has `count` pointers to messages; the
    // answers have room for `count`, start as nulls, and are handed over with all that was put into them.
    unsafe {
        let answers = &*data.cast::<Answers<'_>>();
        let given = libc::calloc(count, size_of::<Response>()).cast::<Response>();
        if given.is_null() {
            return CONVERSATION_FAILED;
        }
        for index in 0..count {
            let message = *messages.add(index);
            let answer = match if message.is_null() { 0 } else { (*message).style } {
                PROMPT_HIDDEN => answers.password,
                PROMPT_SHOWN => answers.user,
                _ => continue,
            };
            (*given.add(index)).text = libc::strdup(answer.as_ptr());
        }
        *responses = given;
    }
    SUCCESS
}

/// Stands in for PAM's own delay after a refusal.
unsafe extern "C" fn do_not_sleep(_result: c_int, _microseconds: c_uint, _data: *mut c_void) {}
