//! quicgym's C interface, real/embedding/quicgym/controller.h: a controller, or a policy that steers one.
//!
//! The library comes with the Python package `quicgym` and is opened at run time, so that a build
//! needs no path to it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

const API_VERSION: c_int = 1;
const OK: c_int = 0;

/// The same layout as in the header.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Snapshot {
    pub window_bytes: u64,
    pub pacing_rate_bytes_per_s: f64,
    pub in_flight_bytes: u64,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    pub latest_rtt_ns: i64,
    pub smoothed_rtt_ns: i64,
    pub min_rtt_ns: i64,
    pub bandwidth_estimate_bytes_per_s: f64,
    pub round_trip_estimate_ns: i64,
    pub mode: i32,
    pub wants_ect1: i32,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            unsafe fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $($name: *unsafe {
                        library.get(concat!("quicgym_", stringify!($name), "\0").as_bytes())
                    }?,)*
                })
            }
        }
    };
}

functions! {
    api_version() -> c_int;
    last_error() -> *const c_char;
    controller_new(*const c_char, u64, u64, i64) -> *mut c_void;
    controller_of(*const c_void, u64, u64, i64) -> *mut c_void;
    controller_free(*mut c_void);
    set_parameter(*mut c_void, *const c_char, *const f64, usize) -> c_int;
    on_handshake(*mut c_void, i64, i64) -> c_int;
    on_sent(*mut c_void, i64, u64, u64) -> c_int;
    on_ack(*mut c_void, i64, i64, *const u64, usize) -> c_int;
    on_loss(*mut c_void, i64, *const u64, usize) -> c_int;
    on_persistent_congestion(*mut c_void, i64) -> c_int;
    on_app_limited(*mut c_void, i64) -> c_int;
    set_application(*mut c_void, u64, u64) -> c_int;
    window_bytes(*mut c_void) -> u64;
    pacing_rate_bytes_per_s(*mut c_void) -> f64;
    snapshot(*mut c_void, *mut Snapshot) -> c_int;
    policy_load(*const c_char) -> *mut c_void;
    policy_free(*mut c_void);
    policy_controller_new(*mut c_void, u64, u64, i64) -> *mut c_void;
    policy_decide(*mut c_void, i64, *mut i64) -> c_int;
}

pub struct Library {
    functions: Functions,
    _library: libloading::Library, // outlives the pointers into it
}

impl Library {
    pub fn open(path: &Path) -> Result<Arc<Self>, String> {
        let fault = |error| format!("{}: {error}; install quicgym again", path.display());
        // SAFETY: quicgym's library; loading it only registers its controllers.
        let library = unsafe { libloading::Library::new(path) }.map_err(fault)?;
        // SAFETY: the signatures are those of the header, whose version is compared.
        let functions = unsafe { Functions::find(&library) }.map_err(fault)?;
        let version = unsafe { (functions.api_version)() };
        if version != API_VERSION {
            return Err(format!(
                "{} has version {version} of the C interface, quicgym-noq needs {API_VERSION}; \
                 install both of the same version",
                path.display()
            ));
        }
        Ok(Arc::new(Self { functions, _library: library }))
    }

    fn last_error(&self) -> String {
        // SAFETY: a text that is valid until this thread's next error.
        let text = unsafe { CStr::from_ptr((self.functions.last_error)()) };
        text.to_string_lossy().into_owned()
    }
}

fn to_c(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{text:?} contains a zero byte"))
}

/// A controller of the catalogue or a user's, or one that a policy steers, for one connection. Times are ns.
pub struct Controller {
    library: Arc<Library>,
    pointer: NonNull<c_void>,
}

// SAFETY: any thread may use it, one at a time, says the header.
unsafe impl Send for Controller {}

impl Controller {
    pub fn of_catalogue(
        library: &Arc<Library>,
        name: &str,
        max_datagram_bytes: u16,
        seed: u64,
        now: i64,
    ) -> Result<Self, String> {
        let text = to_c(name)?;
        let pointer = unsafe {
            (library.functions.controller_new)(text.as_ptr(), max_datagram_bytes.into(), seed, now)
        };
        Self::made(library, pointer)
    }

    /// A user's; `specification` is the address of its description, as the header has it.
    pub fn of_user(
        library: &Arc<Library>,
        specification: usize,
        max_datagram_bytes: u16,
        seed: u64,
        now: i64,
    ) -> Result<Self, String> {
        let description = specification as *const c_void;
        let pointer =
            unsafe { (library.functions.controller_of)(description, max_datagram_bytes.into(), seed, now) };
        Self::made(library, pointer)
    }

    pub fn of_policy(
        library: &Arc<Library>,
        path: &str,
        max_datagram_bytes: u16,
        seed: u64,
        now: i64,
    ) -> Result<Self, String> {
        let functions = &library.functions;
        let path = to_c(path)?;
        let policy = unsafe { (functions.policy_load)(path.as_ptr()) };
        if policy.is_null() {
            return Err(library.last_error());
        }
        let pointer =
            unsafe { (functions.policy_controller_new)(policy, max_datagram_bytes.into(), seed, now) };
        let made = Self::made(library, pointer);
        unsafe { (functions.policy_free)(policy) }; // the controller keeps it
        made
    }

    fn made(library: &Arc<Library>, pointer: *mut c_void) -> Result<Self, String> {
        let pointer = NonNull::new(pointer).ok_or_else(|| library.last_error())?;
        Ok(Self { library: library.clone(), pointer })
    }

    fn checked(&self, code: c_int) -> Result<(), String> {
        if code == OK { Ok(()) } else { Err(self.library.last_error()) }
    }

    pub fn with_parameters(self, parameters: &[(String, Vec<f64>)]) -> Result<Self, String> {
        for (name, values) in parameters {
            let name = to_c(name)?;
            self.checked(unsafe {
                (self.library.functions.set_parameter)(
                    self.pointer.as_ptr(),
                    name.as_ptr(),
                    values.as_ptr(),
                    values.len(),
                )
            })?;
        }
        Ok(self)
    }

    pub fn on_handshake(&mut self, now: i64, rtt: i64) -> Result<(), String> {
        self.checked(unsafe { (self.library.functions.on_handshake)(self.pointer.as_ptr(), now, rtt) })
    }

    pub fn on_sent(&mut self, now: i64, number: u64, bytes: u16) -> Result<(), String> {
        self.checked(unsafe {
            (self.library.functions.on_sent)(self.pointer.as_ptr(), now, number, bytes.into())
        })
    }

    pub fn on_ack(&mut self, now: i64, ack_delay: i64, numbers: &[u64]) -> Result<(), String> {
        self.checked(unsafe {
            (self.library.functions.on_ack)(
                self.pointer.as_ptr(),
                now,
                ack_delay,
                numbers.as_ptr(),
                numbers.len(),
            )
        })
    }

    pub fn on_loss(&mut self, now: i64, numbers: &[u64]) -> Result<(), String> {
        self.checked(unsafe {
            (self.library.functions.on_loss)(self.pointer.as_ptr(), now, numbers.as_ptr(), numbers.len())
        })
    }

    pub fn on_persistent_congestion(&mut self, now: i64) -> Result<(), String> {
        self.checked(unsafe { (self.library.functions.on_persistent_congestion)(self.pointer.as_ptr(), now) })
    }

    pub fn on_app_limited(&mut self, now: i64) -> Result<(), String> {
        self.checked(unsafe { (self.library.functions.on_app_limited)(self.pointer.as_ptr(), now) })
    }

    pub fn set_application(&mut self, unsent_bytes: u64, blocked_events: u64) -> Result<(), String> {
        self.checked(unsafe {
            (self.library.functions.set_application)(self.pointer.as_ptr(), unsent_bytes, blocked_events)
        })
    }

    pub fn window_bytes(&self) -> u64 {
        unsafe { (self.library.functions.window_bytes)(self.pointer.as_ptr()) }
    }

    pub fn pacing_rate(&self) -> f64 {
        unsafe { (self.library.functions.pacing_rate_bytes_per_s)(self.pointer.as_ptr()) }
    }

    pub fn snapshot(&self) -> Result<Snapshot, String> {
        let mut snapshot = Snapshot::default();
        let code =
            unsafe { (self.library.functions.snapshot)(self.pointer.as_ptr(), ptr::from_mut(&mut snapshot)) };
        self.checked(code)?;
        Ok(snapshot)
    }

    /// A policy's; returns when the next decision is due.
    pub fn decide(&mut self, now: i64) -> Result<i64, String> {
        let mut next = 0;
        let code = unsafe {
            (self.library.functions.policy_decide)(self.pointer.as_ptr(), now, ptr::from_mut(&mut next))
        };
        self.checked(code)?;
        Ok(next)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        unsafe { (self.library.functions.controller_free)(self.pointer.as_ptr()) };
    }
}
