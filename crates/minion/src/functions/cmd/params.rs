//! The parameters of `cmd.*`, in stock Salt's order: people give them by position, too.

use super::super::Param;
use Param::{Keywords, Optional, Required};

const CWD: Param = Optional("cwd", "None");
const STDIN: Param = Optional("stdin", "None");
const RUNAS: Param = Optional("runas", "None");
const GROUP: Param = Optional("group", "None");
const SHELL: Param = Optional("shell", "'/bin/sh'");
const PYTHON_SHELL: Param = Optional("python_shell", "None");
const ENV: Param = Optional("env", "None");
const CLEAN_ENV: Param = Optional("clean_env", "False");
const TEMPLATE: Param = Optional("template", "None");
const RSTRIP: Param = Optional("rstrip", "True");
const UMASK: Param = Optional("umask", "None");
const OUTPUT_ENCODING: Param = Optional("output_encoding", "None");
const OUTPUT_LOGLEVEL: Param = Optional("output_loglevel", "'debug'");
const LOG_CALLBACK: Param = Optional("log_callback", "None");
const HIDE_OUTPUT: Param = Optional("hide_output", "False");
const TIMEOUT: Param = Optional("timeout", "None");
const RESET_SYSTEM_LOCALE: Param = Optional("reset_system_locale", "True");
const IGNORE_RETCODE: Param = Optional("ignore_retcode", "False");
const SALTENV: Param = Optional("saltenv", "None");
const USE_VT: Param = Optional("use_vt", "False");
const BG: Param = Optional("bg", "False");
const PASSWORD: Param = Optional("password", "None");
const PREPEND_PATH: Param = Optional("prepend_path", "None");
const SUCCESS_RETCODES: Param = Optional("success_retcodes", "None");
const SUCCESS_STDOUT: Param = Optional("success_stdout", "None");
const SUCCESS_STDERR: Param = Optional("success_stderr", "None");
const STDIN_RAW_NEWLINES: Param = Optional("stdin_raw_newlines", "False");
const KWARGS: Param = Keywords("kwargs");

#[rustfmt::skip]
pub(super) const RUN: &[Param] = &[
    Required("cmd"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, CLEAN_ENV, TEMPLATE, RSTRIP, UMASK,
    OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, HIDE_OUTPUT, TIMEOUT, RESET_SYSTEM_LOCALE, IGNORE_RETCODE,
    SALTENV, USE_VT, Optional("redirect_stderr", "True"), BG, PASSWORD, Optional("encoded_cmd", "False"),
    Optional("raise_err", "False"), PREPEND_PATH, SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR,
    STDIN_RAW_NEWLINES, KWARGS,
];

#[rustfmt::skip]
pub(super) const RUN_ALL: &[Param] = &[
    Required("cmd"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, CLEAN_ENV, TEMPLATE, RSTRIP, UMASK,
    OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, HIDE_OUTPUT, TIMEOUT, RESET_SYSTEM_LOCALE, IGNORE_RETCODE,
    SALTENV, USE_VT, Optional("redirect_stderr", "False"), PASSWORD, Optional("encoded_cmd", "False"), PREPEND_PATH,
    SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, STDIN_RAW_NEWLINES, KWARGS,
];

/// `run_stdout` and `run_stderr`.
#[rustfmt::skip]
pub(super) const RUN_ONE_STREAM: &[Param] = &[
    Required("cmd"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, CLEAN_ENV, TEMPLATE, RSTRIP, UMASK,
    OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, HIDE_OUTPUT, TIMEOUT, RESET_SYSTEM_LOCALE, IGNORE_RETCODE,
    SALTENV, USE_VT, PASSWORD, PREPEND_PATH, SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, STDIN_RAW_NEWLINES,
    KWARGS,
];

#[rustfmt::skip]
pub(super) const SHELL_ONLY: &[Param] = &[
    Required("cmd"), CWD, STDIN, RUNAS, GROUP, SHELL, ENV, CLEAN_ENV, TEMPLATE, RSTRIP, UMASK, OUTPUT_ENCODING,
    OUTPUT_LOGLEVEL, LOG_CALLBACK, HIDE_OUTPUT, TIMEOUT, RESET_SYSTEM_LOCALE, IGNORE_RETCODE, SALTENV, USE_VT, BG,
    PASSWORD, PREPEND_PATH, SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, STDIN_RAW_NEWLINES, KWARGS,
];

#[rustfmt::skip]
pub(super) const RETCODE: &[Param] = &[
    Required("cmd"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, CLEAN_ENV, TEMPLATE, UMASK, OUTPUT_ENCODING,
    OUTPUT_LOGLEVEL, LOG_CALLBACK, TIMEOUT, RESET_SYSTEM_LOCALE, IGNORE_RETCODE, SALTENV, USE_VT, PASSWORD,
    SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, STDIN_RAW_NEWLINES, KWARGS,
];

#[rustfmt::skip]
pub(super) const RUN_BG: &[Param] = &[
    Required("cmd"), CWD, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, CLEAN_ENV, TEMPLATE, UMASK, TIMEOUT,
    OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, RESET_SYSTEM_LOCALE, IGNORE_RETCODE, SALTENV, PASSWORD,
    PREPEND_PATH, SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, KWARGS,
];

#[rustfmt::skip]
pub(super) const SCRIPT: &[Param] = &[
    Required("source"), Optional("args", "None"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, TEMPLATE, UMASK,
    OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, HIDE_OUTPUT, TIMEOUT, RESET_SYSTEM_LOCALE, SALTENV, USE_VT, BG,
    PASSWORD, SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, IGNORE_RETCODE, STDIN_RAW_NEWLINES, KWARGS,
];

#[rustfmt::skip]
pub(super) const SCRIPT_RETCODE: &[Param] = &[
    Required("source"), Optional("args", "None"), CWD, STDIN, RUNAS, GROUP, SHELL, PYTHON_SHELL, ENV, TEMPLATE, UMASK,
    TIMEOUT, RESET_SYSTEM_LOCALE, SALTENV, OUTPUT_ENCODING, OUTPUT_LOGLEVEL, LOG_CALLBACK, USE_VT, PASSWORD,
    SUCCESS_RETCODES, SUCCESS_STDOUT, SUCCESS_STDERR, IGNORE_RETCODE, STDIN_RAW_NEWLINES, KWARGS,
];

#[rustfmt::skip]
pub(super) const EXEC_CODE: &[Param] = &[
    Required("lang"), Required("code"), CWD, Optional("args", "None"), STDIN, RUNAS, GROUP, SHELL, ENV, CLEAN_ENV,
    RSTRIP, UMASK, OUTPUT_ENCODING, HIDE_OUTPUT, TIMEOUT, IGNORE_RETCODE, PREPEND_PATH, SUCCESS_RETCODES,
    SUCCESS_STDOUT, SUCCESS_STDERR, KWARGS,
];
