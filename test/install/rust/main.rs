// By hand, without bindgen: a plan for a device that is only described, and its packed size.
use std::ffi::{c_char, c_int, c_void, CStr};
use std::{mem::size_of, ptr};

#[repr(C)]
struct RtOptions {
    struct_size: usize,
    library: *const c_char,
    log: *const c_void,
    log_data: *mut c_void,
    devices: *const c_void,
    device_count: usize,
}

#[repr(C)]
struct Problem {
    struct_size: usize,
    texts: [*const c_char; 4], // weights, activations, scales, result
    n: i64,
    k: i64,
    group: i64,
}

#[link(name = "tilus_rt")]
extern "C" {
    fn tilus_rt_version() -> *const c_char;
    fn tilus_find_device(name: *const c_char) -> *const c_void;
    fn tilus_rt_open(o: *const RtOptions, rt: *mut *mut c_void, why: *mut c_char, size: usize) -> c_int;
    fn tilus_rt_close(rt: *mut c_void);
}

#[link(name = "tilus_matmul")]
extern "C" {
    fn tilus_matmul_open(rt: *mut c_void, o: *const c_void, out: *mut *mut c_void) -> c_int;
    fn tilus_matmul_plan_create(m: *mut c_void, p: *const Problem, device: c_int, out: *mut *mut c_void) -> c_int;
    fn tilus_matmul_packed_size(plan: *const c_void) -> usize;
    fn tilus_matmul_plan_free(plan: *mut c_void);
    fn tilus_matmul_close(m: *mut c_void);
}

fn main() {
    let (mut rt, mut matmul, mut plan) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    unsafe {
        println!("version {}", CStr::from_ptr(tilus_rt_version()).to_str().unwrap());
        let options = RtOptions {
            struct_size: size_of::<RtOptions>(), library: ptr::null(), log: ptr::null(), log_data: ptr::null_mut(),
            devices: tilus_find_device(b"h200\0".as_ptr().cast()), device_count: 1,
        };
        assert_eq!(tilus_rt_open(&options, &mut rt, ptr::null_mut(), 0), 0);
        assert_eq!(tilus_matmul_open(rt, ptr::null(), &mut matmul), 0);
        let texts = [b"u4\0".as_ptr().cast(), ptr::null(), ptr::null(), ptr::null()];
        let problem = Problem { struct_size: size_of::<Problem>(), texts, n: 1024, k: 512, group: 128 };
        assert_eq!(tilus_matmul_plan_create(matmul, &problem, 0, &mut plan), 0);
        println!("packed {} bytes", tilus_matmul_packed_size(plan));
        tilus_matmul_plan_free(plan);
        tilus_matmul_close(matmul);
        tilus_rt_close(rt);
    }
}
