//! The matrix unit itself: is it there, its tile configuration, its inner loop.
//!
//! The compiler's AMX intrinsics are not stable, so the instructions are written out.

use super::Square;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// `arch_prctl`: ask for an extended state component.
const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
/// The tile data component.
const TILE_DATA: libc::c_ulong = 18;
/// Tile configuration and tile data in XCR0.
const TILE_STATE: u64 = 1 << 17 | 1 << 18;

/// See [`super::Amx::available`].
pub(super) fn available() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| cpu_has_it() && system_saves_it() && kernel_permits_it())
}

fn cpu_has_it() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    let wanted = AMX_BF16 | AMX_TILE;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & wanted == wanted
}

fn system_saves_it() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let (low, high): (u32, u32);
    // SAFETY: OSXSAVE says that XGETBV may be used; it reads a register.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack)) };
    let xcr0 = u64::from(high) << 32 | u64::from(low);
    xcr0 & TILE_STATE == TILE_STATE
}

fn kernel_permits_it() -> bool {
    // SAFETY: a request that changes only what this process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

/// The operand of `ldtilecfg`.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// The calling thread's tiles are configured while this lives.
pub(super) struct Configured;

impl Configured {
    /// Configures all eight tiles as 16 rows of 64 bytes.
    pub(super) fn new() -> Configured {
        let mut c =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        c.row_bytes[..8].fill(64);
        c.rows[..8].fill(16);
        // SAFETY: only made where AMX is available; the instruction reads the 64 bytes of c.
        unsafe { asm!("ldtilecfg [{0}]", in(reg) &c, options(nostack, readonly)) };
        Configured
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: made only where AMX is available. Idle tiles cost power and context-switch time.
        unsafe { asm!("tilerelease", options(nomem, nostack)) };
    }
}

/// Two by two tiles of `c`.
///
/// # Safety
/// The tiles are configured; the panels hold `steps` steps, `c` is a whole square.
pub(super) unsafe fn multiply(s: &Square) {
    // SAFETY: the caller's promise; no Rust code uses the tile registers.
    unsafe {
        asm!(
            "test {accumulate:e}, {accumulate:e}",
            "jz 2f",
            "tileloadd tmm0, [{c} + {c_rs}]",
            "tileloadd tmm1, [{c} + {c_rs} + 64]",
            "tileloadd tmm2, [{below} + {c_rs}]",
            "tileloadd tmm3, [{below} + {c_rs} + 64]",
            "jmp 3f",
            "2:",
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "3:",
            "tileloadd tmm4, [{a} + {line}]",
            "tileloadd tmm6, [{b} + {line}]",
            "tileloadd tmm7, [{b} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{a} + {line} + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {steps}",
            "jnz 3b",
            "tilestored [{c} + {c_rs}], tmm0",
            "tilestored [{c} + {c_rs} + 64], tmm1",
            "tilestored [{below} + {c_rs}], tmm2",
            "tilestored [{below} + {c_rs} + 64], tmm3",
            accumulate = in(reg) u32::from(s.accumulate),
            c = in(reg) s.c,
            below = in(reg) s.c.offset(16 * s.c_rs),
            c_rs = in(reg) 4 * s.c_rs,
            line = in(reg) 64usize,
            a = inout(reg) s.a => _,
            b = inout(reg) s.b => _,
            steps = inout(reg) s.steps => _,
            options(nostack),
        );
    }
}
