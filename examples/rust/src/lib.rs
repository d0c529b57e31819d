//! A safe wrapper of the runtime and of planning and packing. What Rust checks in place of the
//! caller: lifetimes (a plan ends before its library, that before the runtime), lengths of
//! slices, and that errors are looked at. Launching stays unsafe: it takes device addresses.
pub mod ffi;

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::marker::PhantomData;
use std::mem::size_of;
use std::{fmt, ptr};

/// A status that is not TILUS_OK, and why.
#[derive(Debug)]
pub struct Error {
    pub status: c_int,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.text, self.status)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// tilus_rt_error() belongs to the thread, so it is read before this thread calls again.
fn check(status: ffi::tilus_status) -> Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(Error { status, text: text_of(unsafe { ffi::tilus_rt_error() }) }),
    }
}

fn wrong<T>(text: String) -> Result<T> {
    Err(Error { status: 1, text })
}

fn text_of(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn c_text(text: &str) -> Result<CString> {
    CString::new(text).or_else(|_| wrong(format!("{text:?} has a NUL")))
}

/// The driver and its devices, or a device that is only described.
pub struct Runtime(*mut ffi::tilus_rt);

// Any number of threads may use one tilus_rt, libraries and plans (tilus/runtime.h, matmul.h).
unsafe impl Send for Runtime {}
unsafe impl Sync for Runtime {}

impl Runtime {
    /// Opens the CUDA driver.
    pub fn open() -> Result<Runtime> {
        Runtime::open_with(ptr::null())
    }

    /// Plans and packs as for a device that need not be there, "h200".
    pub fn software(device: &str) -> Result<Runtime> {
        let name = c_text(device)?;
        let devices = unsafe { ffi::tilus_find_device(name.as_ptr()) };
        if devices.is_null() {
            return wrong(format!("no device is called {device:?}"));
        }
        Runtime::open_with(&ffi::tilus_rt_options {
            struct_size: size_of::<ffi::tilus_rt_options>(),
            library: ptr::null(),
            log: None,
            log_data: ptr::null_mut(),
            devices,
            device_count: 1,
        })
    }

    fn open_with(options: *const ffi::tilus_rt_options) -> Result<Runtime> {
        let (mut rt, mut message) = (ptr::null_mut(), [0 as c_char; 512]);
        let status =
            unsafe { ffi::tilus_rt_open(options, &mut rt, message.as_mut_ptr(), message.len()) };
        match status {
            0 => Ok(Runtime(rt)),
            _ => Err(Error { status, text: text_of(message.as_ptr()) }),
        }
    }

    pub fn device_name(&self, device: i32) -> String {
        text_of(unsafe { ffi::tilus_rt_device_name(self.0, device) })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { ffi::tilus_rt_close(self.0) }
    }
}

/// Where kernels come from: a folder of artefacts.
pub struct Library<'rt> {
    raw: *mut ffi::tilus_matmul,
    runtime: PhantomData<&'rt Runtime>,
}

unsafe impl Send for Library<'_> {}
unsafe impl Sync for Library<'_> {}

impl<'rt> Library<'rt> {
    pub fn open(runtime: &'rt Runtime, directory: Option<&str>) -> Result<Library<'rt>> {
        let directory = directory.map(c_text).transpose()?;
        let options = ffi::tilus_matmul_options {
            struct_size: size_of::<ffi::tilus_matmul_options>(),
            kernels: ptr::null(),
            kernel_count: 0,
            directory: directory.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
        };
        let mut raw = ptr::null_mut();
        check(unsafe { ffi::tilus_matmul_open(runtime.0, &options, &mut raw) })?;
        Ok(Library { raw, runtime: PhantomData })
    }
}

impl Drop for Library<'_> {
    fn drop(&mut self) {
        unsafe { ffi::tilus_matmul_close(self.raw) }
    }
}

/// C[m, n] = A[m, k] x B[k, n] with activations and scales in f16.
pub struct Problem<'a> {
    pub weights: &'a str,
    pub n: i64,
    pub k: i64,
    pub group: i64,
}

/// An artefact that runs need, and what it is compiled from.
#[derive(Debug)]
pub struct Kernel {
    pub name: String,
    pub program: String,
    pub parameters: String,
}

pub struct Plan<'lib> {
    raw: *mut ffi::tilus_matmul_plan,
    codes: usize,  // bytes
    scales: usize, // elements
    library: PhantomData<&'lib Library<'lib>>,
}

unsafe impl Send for Plan<'_> {}
unsafe impl Sync for Plan<'_> {}

impl<'lib> Plan<'lib> {
    pub fn new(library: &'lib Library, problem: &Problem, device: i32) -> Result<Plan<'lib>> {
        let weights = c_text(problem.weights)?;
        let raw_problem = ffi::tilus_matmul_problem {
            struct_size: size_of::<ffi::tilus_matmul_problem>(),
            weights: weights.as_ptr(),
            activations: ptr::null(),
            scales: ptr::null(),
            result: ptr::null(),
            n: problem.n,
            k: problem.k,
            group: problem.group,
        };
        let mut raw = ptr::null_mut();
        check(unsafe { ffi::tilus_matmul_plan_create(library.raw, &raw_problem, device, &mut raw) })?;
        // The library has checked the problem, so these are in range.
        let (n, k) = (problem.n as usize, problem.k as usize);
        let bits = unsafe { ffi::tilus_type_bits(weights.as_ptr()) } as usize;
        let group = if problem.group == 0 { k } else { problem.group as usize };
        Ok(Plan {
            raw,
            codes: (n * k * bits).div_ceil(8),
            scales: n * k.div_ceil(group),
            library: PhantomData,
        })
    }

    /// Packs codes [n, k] without gaps and scales [n, groups] in f16.
    pub fn pack(&self, codes: &[u8], scales: &[u16]) -> Result<Vec<u8>> {
        if codes.len() != self.codes || scales.len() != self.scales {
            return wrong(format!(
                "{} bytes of codes and {} scales, not {} and {}",
                codes.len(), scales.len(), self.codes, self.scales
            ));
        }
        let weights = ffi::tilus_matmul_weights {
            struct_size: size_of::<ffi::tilus_matmul_weights>(),
            codes: codes.as_ptr().cast(),
            scales: scales.as_ptr().cast(),
            zeros: ptr::null(),
            transposed: true,
        };
        let mut packed = vec![0u8; unsafe { ffi::tilus_matmul_packed_size(self.raw) }];
        check(unsafe { ffi::tilus_matmul_pack(self.raw, &weights, packed.as_mut_ptr().cast()) })?;
        Ok(packed)
    }

    /// The artefacts that runs of up to `m` rows need.
    pub fn kernels(&self, m: i64) -> Result<Vec<Kernel>> {
        let raw = unsafe { ffi::tilus_matmul_kernels(self.raw, m) };
        if raw.is_null() {
            return Err(Error { status: 3, text: "out of memory".to_owned() });
        }
        let text = text_of(raw);
        unsafe { ffi::tilus_free(raw.cast()) };
        let kernels = text.lines().filter_map(|line| {
            let mut words = line.splitn(3, '\t').map(str::to_owned);
            Some(Kernel { name: words.next()?, program: words.next()?, parameters: words.next()? })
        });
        Ok(kernels.collect())
    }

    /// Loads what runs of `m` rows need.
    pub fn prepare(&self, m: i64) -> Result<()> {
        check(unsafe { ffi::tilus_matmul_prepare(self.raw, m) })
    }

    pub fn workspace_size(&self, m: i64) -> usize {
        unsafe { ffi::tilus_matmul_workspace_size(self.raw, m) }
    }

    /// What `ffi::tilus_matmul_call.weights_identity` is of weights that this plan packed.
    pub fn identity(&self) -> u64 {
        unsafe { ffi::tilus_matmul_packed_identity(self.raw) }
    }

    /// Enqueues a product.
    ///
    /// # Safety
    /// The call's addresses are of device memory as tilus/matmul.h asks, which lives until the
    /// product has ended, and the stream is of the plan's device.
    pub unsafe fn run(&self, stream: *mut c_void, call: &ffi::tilus_matmul_call) -> Result<()> {
        check(ffi::tilus_matmul_run(self.raw, stream, call))
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        unsafe { ffi::tilus_matmul_plan_free(self.raw) }
    }
}
