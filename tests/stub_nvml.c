/* A stand-in for NVIDIA's libnvidia-ml.so.1: two cards, of which the driver does not open one.
 *
 * -DREFUSED=0 refuses the first card in place of the second. -DBEFORE_R510 leaves out the functions that drivers before
 * R510 lack, and gives such a driver's versions. A function that is not here is "not found" to pynvml.
 */
#include <stdio.h>

#ifndef REFUSED
#define REFUSED 1
#endif

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { CLOCK_SM = 1 };

static int cards[2]; /* a handle is the address of its card */

static int number(const int *card) { return (int)(card - cards); }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
const char *nvmlErrorString(int error) { return error == NO_PERMISSION ? "Insufficient Permissions" : "Error"; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, int **card) {
    if (index == REFUSED) return NO_PERMISSION;
    *card = &cards[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, int **card) {
    unsigned index;
    if (sscanf(uuid, "GPU-%8u", &index) != 1 || index > 1) return NOT_FOUND;
    *card = &cards[index];
    return SUCCESS;
}

int nvmlDeviceGetName(const int *card, char *text, unsigned size) {
    (void)card;
    return snprintf(text, size, "NVIDIA Stub"), SUCCESS;
}

int nvmlDeviceGetUUID(const int *card, char *text, unsigned size) {
    return snprintf(text, size, "GPU-%08d-0000-0000-0000-000000000000", number(card)), SUCCESS;
}

int nvmlDeviceGetMigMode(const int *card, unsigned *now, unsigned *pending) {
    (void)card, (void)now, (void)pending;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetPowerManagementLimit(const int *card, unsigned *milliwatts) {
    (void)card;
    *milliwatts = 350000;
    return SUCCESS;
}

int nvmlDeviceGetPowerManagementDefaultLimit(const int *card, unsigned *milliwatts) {
    (void)card;
    *milliwatts = 700000;
    return SUCCESS;
}

int nvmlDeviceGetEccMode(const int *card, unsigned *now, unsigned *pending) {
    (void)card;
    *now = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(const int *card, int kind, int counter, unsigned long long *errors) {
    (void)card;
    *errors = kind == 1 && counter == 0 ? 2 : 900; /* uncorrected, since the driver was loaded */
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(const int *card, int clock, unsigned *mhz) {
    (void)card;
    *mhz = clock == CLOCK_SM ? 345 : 2619;
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(const int *card, int clock, unsigned *mhz) {
    (void)card;
    *mhz = clock == CLOCK_SM ? 1980 : 2619;
    return SUCCESS;
}

int nvmlDeviceGetPersistenceMode(const int *card, int *mode) {
    (void)card;
    *mode = 0;
    return SUCCESS;
}

struct violation { unsigned long long reference_time_us, violation_time_ns; };

int nvmlDeviceGetViolationStatus(const int *card, int policy, struct violation *status) {
    if (policy != 0) return NOT_SUPPORTED; /* counts slowdowns for power, and none for heat */
    status->violation_time_ns = 100 + number(card);
    return SUCCESS;
}

#ifdef BEFORE_R510

int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "470.256.02"), SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 11040; return SUCCESS; }

#else

int nvmlSystemGetDriverVersion(char *text, unsigned size) { return snprintf(text, size, "580.65.06"), SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return SUCCESS; }

struct process { unsigned pid; unsigned long long memory_bytes; unsigned gpu_instance, compute_instance; };

int nvmlDeviceGetComputeRunningProcesses_v3(const int *card, unsigned *count, struct process *found) {
    (void)card;
    if (*count < 1) return *count = 1, INSUFFICIENT_SIZE;
    *count = 1;
    found[0] = (struct process){.pid = 4242, .memory_bytes = 1 << 20};
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(const int *card, unsigned long long *reasons) {
    (void)card;
    *reasons = 4; /* the power cap */
    return SUCCESS;
}

#endif
