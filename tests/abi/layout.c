/* Prints the frozen part of the ABI (abi.h, logger.h), one line a fact: `struct.member offset size`, `struct sizeof n`
 * for what may never grow, `CONSTANT value`. Compiled as C11 and as C++20; layout_test.cpp compares with the golden
 * file. The members of a struct must lie end to end: a member that is not listed here is found by the gap it leaves. */
#include <lhost/logger.h>
#include <lhost/step.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t end_of_last;

static void member(const char* type, const char* name, size_t offset, size_t size) {
  if (offset != end_of_last) {
    fprintf(stderr, "%s.%s is at %zu, expected %zu: a member before it is not listed, or padding\n", type,
            name, offset, end_of_last);
    exit(1);
  }
  end_of_last = offset + size;
  printf("%s.%s %zu %zu\n", type, name, offset, size);
}

static void end(const char* type, size_t size, int grows) {
  if (size != end_of_last) {
    fprintf(stderr, "%s has %zu bytes, its listed members %zu: a member at the end is not listed\n", type,
            size, end_of_last);
    exit(1);
  }
  end_of_last = 0;
  if (!grows) printf("%s sizeof %zu\n", type, size);
}

#define M(T, f) member(#T, #f, offsetof(T, f), sizeof(((T*)0)->f))
#define END_FIXED(T) end(#T, sizeof(T), 0)
#define END_GROWS(T) end(#T, sizeof(T), 1)
#define CONSTANT(c) printf("%s %lld\n", #c, (long long)(c))

/* A slot's exact type. In C++ `noexcept` is part of it. */
#ifdef __cplusplus
#include <type_traits>
#define SLOT(T, f, R, ...)                                                                 \
  static_assert(std::is_same<decltype(T::f), R (*)(__VA_ARGS__) LH_NX>::value, #T "." #f); \
  M(T, f)
#else
#define SLOT(T, f, R, ...)                                                             \
  _Static_assert(_Generic(((T*)0)->f, R(*)(__VA_ARGS__) : 1, default : 0), #T "." #f); \
  M(T, f)
#endif

static void values(void) {
  M(lh_str, ptr);
  M(lh_str, len);
  END_FIXED(lh_str);
  M(lh_bytes, ptr);
  M(lh_bytes, len);
  END_FIXED(lh_bytes);
  M(lh_dtype, code);
  M(lh_dtype, bits);
  M(lh_dtype, lanes);
  END_FIXED(lh_dtype);
  M(lh_device, type);
  M(lh_device, index);
  END_FIXED(lh_device);
  M(lh_view, data);
  M(lh_view, device);
  M(lh_view, ndim);
  M(lh_view, dtype);
  M(lh_view, shape);
  M(lh_view, strides);
  M(lh_view, byte_offset);
  END_FIXED(lh_view);
  M(lh_value, type);
  M(lh_value, n);
  M(lh_value, u);
  END_FIXED(lh_value);
  M(lh_pair, key);
  M(lh_pair, value);
  END_FIXED(lh_pair);
  M(lh_scalar, name);
  M(lh_scalar, value);
  END_FIXED(lh_scalar);
}

static void options_and_state(void) {
  M(lh_option, size);
  M(lh_option, type);
  M(lh_option, flags);
  M(lh_option, n_choices);
  M(lh_option, key);
  M(lh_option, doc);
  M(lh_option, def);
  M(lh_option, min);
  M(lh_option, max);
  M(lh_option, choices);
  M(lh_option, replaced_by);
  M(lh_option, min_len);
  M(lh_option, rsvd0);
  END_GROWS(lh_option);

  M(lh_state_out, size);
  M(lh_state_out, rsvd0);
  M(lh_state_out, ctx);
  SLOT(lh_state_out, put, lh_status, void*, lh_str, const lh_value*);
  SLOT(lh_state_out, put_tensor, lh_status, void*, lh_str, lh_tensor*, const lh_placement*);
  END_GROWS(lh_state_out);

  M(lh_state_in, size);
  M(lh_state_in, rsvd0);
  M(lh_state_in, ctx);
  SLOT(lh_state_in, get, lh_status, void*, lh_str, lh_value*);
  SLOT(lh_state_in, get_tensor, lh_status, void*, lh_str, lh_tensor*, const lh_placement*);
  END_GROWS(lh_state_in);
}

static void host(void) {
  M(lh_host, size);
  M(lh_host, abi_major);
  M(lh_host, abi_minor);
  M(lh_host, rsvd0);
  M(lh_host, name);
  M(lh_host, version);
  M(lh_host, impl);
  SLOT(lh_host, error_new, lh_status, const lh_host*, lh_code, lh_str, lh_str, lh_str);
  SLOT(lh_host, error_code, lh_code, const lh_error*);
  SLOT(lh_host, error_message, lh_str, const lh_error*);
  SLOT(lh_host, error_free, void, lh_error*);
  SLOT(lh_host, log, void, const lh_host*, int32_t, lh_str, lh_str);
  SLOT(lh_host, get_service, const void*, const lh_host*, lh_str);
  END_GROWS(lh_host);
}

static void plugin(void) {
  M(lh_create_args, size);
  M(lh_create_args, rsvd0);
  M(lh_create_args, values);
  M(lh_create_args, n_values);
  M(lh_create_args, run);
  M(lh_create_args, instance);
  END_GROWS(lh_create_args);

  M(lh_component, size);
  M(lh_component, rsvd0);
  M(lh_component, kind);
  M(lh_component, name);
  M(lh_component, version);
  M(lh_component, summary);
  M(lh_component, flags);
  M(lh_component, options);
  M(lh_component, n_options);
  M(lh_component, option_stride);
  SLOT(lh_component, create, lh_status, const lh_component*, const lh_create_args*, void**, const void**);
  M(lh_component, defaults);
  M(lh_component, n_defaults);
  M(lh_component, rsvd1);
  END_GROWS(lh_component);

  M(lh_plugin, size);
  M(lh_plugin, abi_major);
  M(lh_plugin, abi_minor);
  M(lh_plugin, min_minor);
  M(lh_plugin, name);
  M(lh_plugin, version);
  M(lh_plugin, license);
  M(lh_plugin, n_components);
  M(lh_plugin, component_stride);
  M(lh_plugin, components);
  SLOT(lh_plugin, init, lh_status, const lh_host*);
  END_GROWS(lh_plugin);

  M(lh_note_v1, size);
  M(lh_note_v1, abi_major);
  M(lh_note_v1, abi_minor);
  M(lh_note_v1, min_minor);
  M(lh_note_v1, name);
  M(lh_note_v1, version);
  M(lh_note_v1, license);
  M(lh_note_v1, components);
  M(lh_note_v1, torch);
  END_FIXED(lh_note_v1);
  M(lh_elf_note, namesz);
  M(lh_elf_note, descsz);
  M(lh_elf_note, type);
  M(lh_elf_note, name);
  M(lh_elf_note, desc);
  END_FIXED(lh_elf_note);
}

static void logger(void) {
  M(lh_run_info, size);
  M(lh_run_info, flags);
  M(lh_run_info, name);
  M(lh_run_info, dir);
  M(lh_run_info, manifest);
  M(lh_run_info, host_version);
  M(lh_run_info, rank);
  M(lh_run_info, world_size);
  END_GROWS(lh_run_info);

  M(lh_record, size);
  M(lh_record, stage);
  M(lh_record, global_step);
  M(lh_record, epoch);
  M(lh_record, samples);
  M(lh_record, unix_time_ns);
  M(lh_record, scalars);
  M(lh_record, n_scalars);
  END_GROWS(lh_record);

  M(lh_logger_v1, size);
  M(lh_logger_v1, rsvd0);
  SLOT(lh_logger_v1, destroy, void, lh_logger*);
  SLOT(lh_logger_v1, save_state, lh_status, lh_logger*, const lh_state_out*);
  SLOT(lh_logger_v1, load_state, lh_status, lh_logger*, const lh_state_in*);
  SLOT(lh_logger_v1, open, lh_status, lh_logger*, const lh_run_info*);
  SLOT(lh_logger_v1, params, lh_status, lh_logger*, const lh_pair*, uint64_t);
  SLOT(lh_logger_v1, record, lh_status, lh_logger*, const lh_record*);
  SLOT(lh_logger_v1, flush, lh_status, lh_logger*);
  SLOT(lh_logger_v1, close, lh_status, lh_logger*, lh_code, lh_str);
  END_GROWS(lh_logger_v1);
}

static void constants(void) {
  CONSTANT(LH_ABI_MAJOR);
  CONSTANT(LH_NOTE_TYPE);
  CONSTANT(LH_OK);
  CONSTANT(LH_CANCELLED);
  CONSTANT(LH_UNKNOWN);
  CONSTANT(LH_INVALID_ARGUMENT);
  CONSTANT(LH_DEADLINE);
  CONSTANT(LH_NOT_FOUND);
  CONSTANT(LH_ALREADY_EXISTS);
  CONSTANT(LH_PERMISSION);
  CONSTANT(LH_RESOURCE_EXHAUSTED);
  CONSTANT(LH_FAILED_PRECONDITION);
  CONSTANT(LH_ABORTED);
  CONSTANT(LH_OUT_OF_RANGE);
  CONSTANT(LH_UNIMPLEMENTED);
  CONSTANT(LH_INTERNAL);
  CONSTANT(LH_UNAVAILABLE);
  CONSTANT(LH_DATA_LOSS);
  CONSTANT(LH_ABI_MISMATCH);
  CONSTANT(LH_PLUGIN_FAULT);
  CONSTANT(LH_PEER_LOST);
  CONSTANT(LH_DT_INT);
  CONSTANT(LH_DT_UINT);
  CONSTANT(LH_DT_FLOAT);
  CONSTANT(LH_DT_BFLOAT);
  CONSTANT(LH_DT_BOOL);
  CONSTANT(LH_DEVICE_CPU);
  CONSTANT(LH_DEVICE_CUDA);
  CONSTANT(LH_T_NONE);
  CONSTANT(LH_T_BOOL);
  CONSTANT(LH_T_INT);
  CONSTANT(LH_T_FLOAT);
  CONSTANT(LH_T_STR);
  CONSTANT(LH_T_PATH);
  CONSTANT(LH_T_ENUM);
  CONSTANT(LH_T_SIZE);
  CONSTANT(LH_T_DURATION);
  CONSTANT(LH_T_LIST_INT);
  CONSTANT(LH_T_LIST_FLOAT);
  CONSTANT(LH_T_LIST_STR);
  CONSTANT(LH_T_SHARE);
  CONSTANT(LH_T_CADENCE);
  CONSTANT(LH_EVERY_STEPS);
  CONSTANT(LH_EVERY_BATCHES);
  CONSTANT(LH_EVERY_SAMPLES);
  CONSTANT(LH_EVERY_EPOCHS);
  CONSTANT(LH_EVERY_SECONDS);
  CONSTANT(LH_O_REQUIRED);
  CONSTANT(LH_O_DEPRECATED);
  CONSTANT(LH_O_SECRET);
  CONSTANT(LH_O_HYPER);
  CONSTANT(LH_O_MUST_EXIST);
  CONSTANT(LH_LOG_DEBUG);
  CONSTANT(LH_LOG_INFO);
  CONSTANT(LH_LOG_WARN);
  CONSTANT(LH_LOG_ERROR);
  CONSTANT(LH_RUN_RESUMED); /* and of step.h what a record's stage says: */
  CONSTANT(LH_STAGE_FIT);
  CONSTANT(LH_STAGE_VALIDATE);
  CONSTANT(LH_STAGE_TEST);
  CONSTANT(LH_STAGE_PREDICT);
}

int main(void) {
  values();
  options_and_state();
  host();
  plugin();
  logger();
  constants();
  printf("kind %s\nowner %s\n", LH_LOGGER_KIND, LH_NOTE_OWNER);
  return 0;
}
