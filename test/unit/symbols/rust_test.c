/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names of Rust's symbols, as rustc 1.95 made them; binutils 2.40 demangles them the same way,
 * except for hashes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/symbols/rust/punycode.h"
#include "tools/symbols/rust/rust.h"

struct row {
	const char *symbol, *name; /* NULL: none of Rust's */
};

static void expect_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *name = torsh_rust_demangle(rows[i].symbol);

		if (rows[i].name)
			assert_non_null(name);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
		free(name);
	}
}

static const struct row v0_names[] = {
	{"_RINvMsj_NtCslNYArtu3iFV_5alloc3vecINtB6_3VecIBx_hEE14extend_trustedINtNtNtNtCsgEmfK2I1SDS"
	 "_4core4iter8adapters3map3MapINtNtNtB1c_3ops5range5RangejENCNvMNtCs6GmmlP4bgsG_1r4shopINtB2"
	 "p_4Box2BG_E4leak0EEB2r_",
	 "<alloc::vec::Vec<alloc::vec::Vec<u8>>>::extend_trusted::<core::iter::adapters::map::Map<co"
	 "re::ops::range::Range<usize>, <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{closure#0}>>"},
	{"_RINvNtCs6GmmlP4bgsG_1r4shop2chKc2211_Kb1_Kln5_EB4_",
	 "r::shop::ch::<'\\u{2211}', true, -5>"},
	{"_RINvNtCs6GmmlP4bgsG_1r4shop3arrKj11_EB4_", "r::shop::arr::<17>"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCs6GmmlP4bgsG_1r4shop4Box2INtNtCslNYArtu"
	 "3iFV_5alloc3vec3VechEEEBL_",
	 "core::ptr::drop_in_place::<r::shop::Box2<alloc::vec::Vec<u8>>>"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNCINvMsj_NtCslNYArtu3iFV_5alloc3vecINtBP_3Vec"
	 "IB1g_hEE14extend_trustedINtNtNtNtB4_4iter8adapters3map3MapINtNtNtB4_3ops5range5RangejENCNv"
	 "MNtCs6GmmlP4bgsG_1r4shopINtB2S_4Box2B1p_E4leak0EE0EB2U_",
	 "core::ptr::drop_in_place::<<alloc::vec::Vec<alloc::vec::Vec<u8>>>::extend_trusted<core::it"
	 "er::adapters::map::Map<core::ops::range::Range<usize>, <r::shop::Box2<alloc::vec::Vec<u8>>"
	 ">::leak::{closure#0}>>::{closure#0}>"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNCINvNtNtNtB4_4iter8adapters3map8map_foldjINt"
	 "NtCslNYArtu3iFV_5alloc3vec3VechEuNCNvMNtCs6GmmlP4bgsG_1r4shopINtB21_4Box2B1m_E4leak0NCINvN"
	 "vNtNtNtBP_6traits8iterator8Iterator8for_each4callB1m_NCINvMsj_B1p_IB1n_B1m_E14extend_trust"
	 "edINtBL_3MapINtNtNtB4_3ops5range5RangejEB1W_EE0E0E0EB23_",
	 "core::ptr::drop_in_place::<core::iter::adapters::map::map_fold<usize, alloc::vec::Vec<u8>,"
	 " (), <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{closure#0}, core::iter::traits::iterator"
	 "::Iterator::for_each::call<alloc::vec::Vec<u8>, <alloc::vec::Vec<alloc::vec::Vec<u8>>>::ex"
	 "tend_trusted<core::iter::adapters::map::Map<core::ops::range::Range<usize>, <r::shop::Box2"
	 "<alloc::vec::Vec<u8>>>::leak::{closure#0}>>::{closure#0}>::{closure#0}>::{closure#0}>"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNCINvNvNtNtNtNtB4_4iter6traits8iterator8Itera"
	 "tor8for_each4callINtNtCslNYArtu3iFV_5alloc3vec3VechENCINvMsj_B1J_IB1H_B1G_E14extend_truste"
	 "dINtNtNtBT_8adapters3map3MapINtNtNtB4_3ops5range5RangejENCNvMNtCs6GmmlP4bgsG_1r4shopINtB3Q"
	 "_4Box2B1G_E4leak0EE0E0EB3S_",
	 "core::ptr::drop_in_place::<core::iter::traits::iterator::Iterator::for_each::call<alloc::v"
	 "ec::Vec<u8>, <alloc::vec::Vec<alloc::vec::Vec<u8>>>::extend_trusted<core::iter::adapters::"
	 "map::Map<core::ops::range::Range<usize>, <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{clos"
	 "ure#0}>>::{closure#0}>::{closure#0}>"},
	{"_RINvXs0_NtNtNtCsgEmfK2I1SDS_4core4iter8adapters3mapINtB6_3MapINtNtNtBc_3ops5range5RangejE"
	 "NCNvMNtCs6GmmlP4bgsG_1r4shopINtB1u_4Box2INtNtCslNYArtu3iFV_5alloc3vec3VechEE4leak0ENtNtNtB"
	 "a_6traits8iterator8Iterator4folduNCINvNvB2K_8for_each4callB23_NCINvMsj_B26_IB24_B23_E14ext"
	 "end_trustedBN_E0E0EB1w_",
	 "<core::iter::adapters::map::Map<core::ops::range::Range<usize>, <r::shop::Box2<alloc::vec:"
	 ":Vec<u8>>>::leak::{closure#0}> as core::iter::traits::iterator::Iterator>::fold::<(), core"
	 "::iter::traits::iterator::Iterator::for_each::call<alloc::vec::Vec<u8>, <alloc::vec::Vec<a"
	 "lloc::vec::Vec<u8>>>::extend_trusted<core::iter::adapters::map::Map<core::ops::range::Rang"
	 "e<usize>, <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{closure#0}>>::{closure#0}>::{closur"
	 "e#0}>"},
	{"_RINvXse_NtCslNYArtu3iFV_5alloc3vecINtB6_3VecIBx_hEEINtNtNtNtCsgEmfK2I1SDS_4core4iter6trai"
	 "ts7collect12FromIteratorBG_E9from_iterINtNtNtBU_8adapters3map3MapINtNtNtBW_3ops5range5Rang"
	 "ejENCNvMNtCs6GmmlP4bgsG_1r4shopINtB2Z_4Box2BG_E4leak0EEB31_",
	 "<alloc::vec::Vec<alloc::vec::Vec<u8>> as core::iter::traits::collect::FromIterator<alloc::"
	 "vec::Vec<u8>>>::from_iter::<core::iter::adapters::map::Map<core::ops::range::Range<usize>,"
	 " <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{closure#0}>>"},
	{"_RINvYINtNtNtCsgEmfK2I1SDS_4core3ops5range5RangejENtNtNtNtBa_4iter6traits8iterator8Iterato"
	 "r3mapINtNtCslNYArtu3iFV_5alloc3vec3VechENCNvMNtCs6GmmlP4bgsG_1r4shopINtB28_4Box2B1u_E4leak"
	 "0EB2a_",
	 "<core::ops::range::Range<usize> as core::iter::traits::iterator::Iterator>::map::<alloc::v"
	 "ec::Vec<u8>, <r::shop::Box2<alloc::vec::Vec<u8>>>::leak::{closure#0}>"},
	{"_RNvXs1g_NtCsgEmfK2I1SDS_4core3fmtRDNtB6_5DebugEL_Bx_3fmtB8_",
	 "<&dyn core::fmt::Debug as core::fmt::Debug>::fmt"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG_INtNtNt"
	 "B4_3ops8function5FnMutTRL0_eEEp6OutputbEL_EECslKGqiwnqz1t_17rustc_codegen_ssa",
	 "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a> core::ops::function::FnMut<(&'a s"
	 "tr,), Output = bool>>>"},
	{"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecTOhFUKCBN_EuENtNtCsjrHSEGnQ3l9_3std5all"
	 "oc6SystemE8grow_oneB13_",
	 "<alloc::raw_vec::RawVec<(*mut u8, unsafe extern \"C\" fn(*mut u8)), std::alloc::System>>::"
	 "grow_one"},
	{"_RNCINvMs0_NtNtCsjrHSEGnQ3l9_3std4sync4onceNtB8_4Once15call_once_forceNCINvMNtBa_9once_loc"
	 "kINtB1b_8OnceLockFUEINtNtCslNYArtu3iFV_5alloc5boxed3BoxDNtNtNtCslKGqiwnqz1t_17rustc_codege"
	 "n_ssa6traits7backend14CodegenBackendEL_EE10initializeNCINvB1a_11get_or_initNCNvNtCshb4Cxot"
	 "JIr4_15rustc_interface4util19get_codegen_backend0E0zE0E0B4a_.llvm.3679397353913339622",
	 "<std::sync::once::Once>::call_once_force::<<std::sync::once_lock::OnceLock<unsafe fn() -> "
	 "alloc::boxed::Box<dyn rustc_codegen_ssa::traits::backend::CodegenBackend>>>::initialize<<s"
	 "td::sync::once_lock::OnceLock<unsafe fn() -> alloc::boxed::Box<dyn rustc_codegen_ssa::trai"
	 "ts::backend::CodegenBackend>>>::get_or_init<rustc_interface::util::get_codegen_backend::{c"
	 "losure#0}>::{closure#0}, !>::{closure#0}>::{closure#0}"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG_INtNtNt"
	 "B4_3ops8function5FnMutTRL0_eEEp6OutputbEL_EECslKGqiwnqz1t_17rustc_codegen_ssa.cold",
	 "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a> core::ops::function::FnMut<(&'a s"
	 "tr,), Output = bool>>> [clone .cold]"},
	{"_RINvNtCslNYArtu3iFV_5alloc3vec9from_elemAhj11_ECs6GmmlP4bgsG_1r",
	 "alloc::vec::from_elem::<[u8; 17]>"},
	{"_RNvXsq_NtCsgEmfK2I1SDS_4core3fmtONtNtB7_3ffi6c_voidNtB5_5Debug3fmtCsjrHSEGnQ3l9_3std",
	 "<*mut core::ffi::c_void as core::fmt::Debug>::fmt"},
	{"_RNvXsp_NtCsgEmfK2I1SDS_4core3fmtPNtNtB7_3ffi6c_voidNtB5_5Debug3fmtB7_",
	 "<*const core::ffi::c_void as core::fmt::Debug>::fmt"},
	{"_RINvNtCsbLd7R6uW4Ys_6ruzstd5frame17read_frame_headerQRShEB4_",
	 "ruzstd::frame::read_frame_header::<&mut &[u8]>"},
	{"_RNSNvYNCINvNtCshb4CxotJIr4_15rustc_interface4util31run_in_thread_pool_with_globalsNCINvNt"
	 "Bb_9interface12run_compileruNCNvCsjDQNFu7nQ4C_17rustc_driver_impl12run_compiler0Es_0uEs_0I"
	 "NtNtNtCsgEmfK2I1SDS_4core3ops8function6FnOnceTjEE9call_once6vtableB1V_",
	 "<rustc_interface::util::run_in_thread_pool_with_globals<rustc_interface::interface::run_co"
	 "mpiler<(), rustc_driver_impl::run_compiler::{closure#0}>::{closure#1}, ()>::{closure#1} as"
	 " core::ops::function::FnOnce<(usize,)>>::call_once::{shim:vtable#0}"},
	{"_RINvNtCsgEmfK2I1SDS_4core3ptr10swap_chunkKj1_ECs6GmmlP4bgsG_1r",
	 "core::ptr::swap_chunk::<1>"},
	{"_RNvMNtCsairCCGeQF1y_12rustc_expand6configNtB2_17StripUnconfigured8cfg_true",
	 "<rustc_expand::config::StripUnconfigured>::cfg_true"},
	{"_RNSNvMs8_NtCsgEmfK2I1SDS_4core3numo15overflowing_div5reify",
	 "<u128>::overflowing_div::{shim:reify#0}"},
	{"_RNvNtCsjrHSEGnQ3l9_3std3env4__var.cold", "std::env::_var [clone .cold]"},
	{"_RINvNtCsgEmfK2I1SDS_4core3mem6forgetINtNtCslNYArtu3iFV_5alloc5boxed3BoxDINtNtNtB4_3ops8fu"
	 "nction6FnOnceuEp6OutputuNtNtB4_6marker4SendEL_EECs6GmmlP4bgsG_1r",
	 "core::mem::forget::<alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + c"
	 "ore::marker::Send>>"},
	{"_RNvXs0_NtCsgEmfK2I1SDS_4core3anyDNtB5_3AnyNtNtB7_6marker4SendEL_NtNtB7_3fmt5Debug3fmt",
	 "<dyn core::any::Any + core::marker::Send as core::fmt::Debug>::fmt"},
	{"_RINvMs2_NtCshg5UprtI8ZK_4jiff4spanNtB6_4Span15try_days_rangedINtNtNtB8_4util8rangeint5ri1"
	 "28Knn80000000000000000000000000000000_Kn7fffffffffffffffffffffffffffffff_EEB8_",
	 "<jiff::span::Span>::try_days_ranged::<jiff::util::rangeint::ri128<-0x800000000000000000000"
	 "00000000000, 0x7fffffffffffffffffffffffffffffff>>"},
	{"_RNvXs0_CshkXY8FcjN5v_12wasm_encoderShNtB5_6Encode6encode",
	 "<[u8] as wasm_encoder::Encode>::encode"},
	{"_RNvCs5BYJobA566Q_8anstream6stderr", "anstream::stderr"},
	{"_RNvNtNtCsgEmfK2I1SDS_4core3fmt3num8exp_u128", "core::fmt::num::exp_u128"},
	{"_RNvNtNtCsdadwybgsbvk_12rustc_middle2ty7closure16closure_typeinfo",
	 "rustc_middle::ty::closure::closure_typeinfo"},
	{"_RNvNvMs_NtCslNYArtu3iFV_5alloc3vecINtB6_3VecppE6remove13assert_failed",
	 "<alloc::vec::Vec<_, _>>::remove::assert_failed"},
};

static void v0_names_are_demangled(void **state)
{
	(void)state;
	expect_rows(v0_names, sizeof(v0_names) / sizeof(*v0_names));
}

static void legacy_names_are_demangled(void **state)
{
	static const struct row rows[] = {
		{"_ZN1r4shop10unsafe_ptr17h46ffb6a584a4cb60E", "r::shop::unsafe_ptr"},
		{"_ZN1r4shop13Box2$LT$T$GT$4leak17h52b7f653c124bc73E", "r::shop::Box2<T>::leak"},
		{"_ZN1r4shop13Box2$LT$T$GT$4leak28_$u7b$$u7b$closure$u7d$$u7d$17he0218aaa8c7e6169E",
		 "r::shop::Box2<T>::leak::{{closure}}"},
		{"_ZN1r4shop2ch17h1d987e5d82f61242E", "r::shop::ch"},
		{"_ZN1r4shop3arr17h9aa6be326e4ceadbE", "r::shop::arr"},
		{"_ZN1r4shop9g$uf6$del17hfd84e7752534a011E", "r::shop::gvdel"},
		{"_ZN1r4main28_$u7b$$u7b$closure$u7d$$u7d$17hc5ce91686b4c05a9E",
		 "r::main::{{closure}}"},
		{"_ZN4core3ptr9const_ptr33_$LT$impl$u20$$BP$const$u20$T$GT$13is_aligned_to17h5590ef23eab063c"
		 "9E",
		 "core::ptr::const_ptr::<impl *const T>::is_aligned_to"},
		{"_ZN39_$LT$$RF$str$u20$as$u20$r..shop..Tr$GT$2go17h076745720096eac5E",
		 "<&str as r::shop::Tr>::go"},
		{"_ZN5alloc5slice29_$LT$impl$u20$$u5b$T$u5d$$GT$6to_vec17hf3b4763e513f5a27E",
		 "alloc::slice::<impl [T]>::to_vec"},
		{"_ZN45_$LT$T$u20$as$u20$alloc..string..ToString$GT$9to_string17hea290673ea7a4281E",
		 "<T as alloc::string::ToString>::to_string"},
		{"_ZN49_$LT$T$u20$as$u20$core..array..SpecArrayClone$GT$5clone17h07de7f8d9a532c69E",
		 "<T as core::array::SpecArrayClone>::clone"},
	};

	(void)state;
	expect_rows(rows, sizeof(rows) / sizeof(*rows));
}

static void names_of_others_are_left_alone(void **state)
{
	static const struct row rows[] = {
		{"_ZN9container17get_h0123456789abcdefE", NULL},
		{"_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
		 NULL},
		{"_ZN3foo3barEv", NULL},
		{"_ZN17h0123456789abcdefE", NULL},
		{"_Rust", NULL},
		{"_R", NULL},
		{"main", NULL},
		{"", NULL},
	};

	(void)state;
	expect_rows(rows, sizeof(rows) / sizeof(*rows));
}

/* Every beginning of each name, and names that refer to themselves, end, and within bounds. */
static void damaged_names_do_no_harm(void **state)
{
	static const char *const symbols[] = {
		"_RINvNtC1a1bFG_KC20abcRL0_hEuB4_E",
		"_RNvXs_C1aDG0_INtB2_1tL_EpB2_1ihELB1_NtB2_1t1f",
		"_RMB_B_",
		"_RNvC1au8gdel_5qa",
		"_RIC1aKj7fffffffffffffff_Kb1_Kc41_Kan5_Kp_E",
	};
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char bomb[4000], copy[128];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		for (size_t k = 0; k <= strlen(symbols[i]); k++) {
			memcpy(copy, symbols[i], k);
			copy[k] = '\0';
			free(torsh_rust_demangle(copy));
		}
	}
	memset(bomb, 'R', sizeof(bomb) - 1);
	bomb[sizeof(bomb) - 1] = '\0';
	memcpy(bomb, "_RIC1a", 6);
	assert_null(torsh_rust_demangle(bomb));
	/* A type of two that are the one before, 40 times over: 2^40 words. */
	n = (size_t)snprintf(bomb, sizeof(bomb), "_RIC1aTuuE");
	for (size_t i = 0, before = 4; i < 40; i++) {
		size_t here = n - 2;
		char to[4] = {digits[(before - 1) / 62], digits[(before - 1) % 62], '_', '\0'};

		if (before <= 62)
			memmove(to, to + 1, 3);
		n += (size_t)snprintf(bomb + n, sizeof(bomb) - n, "TB%sB%sE", to, to);
		before = here;
	}
	snprintf(bomb + n, sizeof(bomb) - n, "E");
	assert_null(torsh_rust_demangle(bomb));
}

static void punycode_is_read(void **state)
{
	char text[64];

	(void)state;
	assert_true(torsh_punycode_decode("gdel_5qa", 8, text, sizeof(text)));
	assert_string_equal(text, "gödel");
	assert_true(torsh_punycode_decode("mnchen_3ya", 10, text, sizeof(text)));
	assert_string_equal(text, "münchen");
	assert_true(torsh_punycode_decode("fiqs8s", 6, text, sizeof(text)));
	assert_string_equal(text, "中国");
	assert_false(torsh_punycode_decode("gdel_5qa", 8, text, 5));
	assert_false(torsh_punycode_decode("x_A", 3, text, sizeof(text)));
	assert_false(torsh_punycode_decode("99999999", 8, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v0_names_are_demangled),
		cmocka_unit_test(legacy_names_are_demangled),
		cmocka_unit_test(names_of_others_are_left_alone),
		cmocka_unit_test(damaged_names_do_no_harm),
		cmocka_unit_test(punycode_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
