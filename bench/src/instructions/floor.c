/* The floor: the least that a module can do for DQ's commands. It opens the key, copies the job, replies and
 * replicates. There is no index, no time, no lease, no file and no replica: what DQ takes more than this is
 * what its promises cost. It has DQ's command names, so that the same workload runs on both. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct Ctx Ctx;
typedef struct Str Str;
typedef struct Key Key;
typedef struct Type Type;
typedef int (*Command)(Ctx *, Str **, int);
/* As redismodule.h has it, version 1; what a type leaves out is null. */
typedef struct { long version; void *load, *save, *rewrite, *memory, *digest; void (*free)(void *); } Methods;

#define API(X) \
    X(int, SetModuleAttribs, (Ctx *, const char *, int, int)) \
    X(int, CreateCommand, (Ctx *, const char *, Command, const char *, int, int, int)) \
    X(Type *, CreateDataType, (Ctx *, const char *, int, Methods *)) \
    X(Key *, OpenKey, (Ctx *, Str *, int)) \
    X(void, CloseKey, (Key *)) \
    X(int, KeyType, (Key *)) \
    X(void *, ModuleTypeGetValue, (Key *)) \
    X(int, ModuleTypeSetValue, (Key *, Type *, void *)) \
    X(const char *, StringPtrLen, (const Str *, size_t *)) \
    X(int, StringToLongLong, (const Str *, long long *)) \
    X(int, ReplyWithArray, (Ctx *, long)) \
    X(int, ReplyWithLongLong, (Ctx *, long long)) \
    X(int, ReplyWithStringBuffer, (Ctx *, const char *, size_t)) \
    X(int, ReplyWithString, (Ctx *, Str *)) \
    X(int, ReplicateVerbatim, (Ctx *)) \
    X(void *, Alloc, (size_t)) X(void *, Realloc, (void *, size_t)) X(void, Free, (void *))
#define DECLARE(result, name, words) static result (*name) words;
API(DECLARE)

typedef struct { unsigned id_len, body_len; char bytes[]; } Job;
typedef struct { size_t len, room, next; Job **jobs; } Queue;
static Type *type;

static void free_queue(void *value) {
    Queue *queue = value;
    for (size_t at = 0; at < queue->len; at++) Free(queue->jobs[at]);
    Free(queue->jobs);
    Free(queue);
}

static Queue *open_queue(Ctx *ctx, Str *name, Key **key) {
    *key = OpenKey(ctx, name, 3 /* to read and write */);
    if (KeyType(*key) != 0) return ModuleTypeGetValue(*key);
    Queue *queue = Alloc(sizeof *queue);
    memset(queue, 0, sizeof *queue);
    ModuleTypeSetValue(*key, type, queue);
    return queue;
}

static void push(Queue *queue, Str *id, Str *body) {
    size_t id_len, body_len;
    const char *id_bytes = StringPtrLen(id, &id_len), *body_bytes = StringPtrLen(body, &body_len);
    Job *job = Alloc(sizeof *job + id_len + body_len);
    job->id_len = id_len, job->body_len = body_len;
    memcpy(job->bytes, id_bytes, id_len);
    memcpy(job->bytes + id_len, body_bytes, body_len);
    if (queue->len == queue->room) {
        queue->room = queue->room ? 2 * queue->room : 16;
        queue->jobs = Realloc(queue->jobs, queue->room * sizeof *queue->jobs);
    }
    queue->jobs[queue->len++] = job;
}

/* key id body [name number ...] */
static int add(Ctx *ctx, Str **args, int count) {
    Key *key;
    long long number;
    Queue *queue = open_queue(ctx, args[1], &key);
    for (int at = 5; at < count; at += 2) StringToLongLong(args[at], &number);
    push(queue, args[2], args[3]);
    CloseKey(key);
    ReplicateVerbatim(ctx);
    return ReplyWithString(ctx, args[2]);
}

/* key n id body [id body ...] [name number ...] */
static int madd(Ctx *ctx, Str **args, int count) {
    Key *key;
    long long number, jobs;
    Queue *queue = open_queue(ctx, args[1], &key);
    StringToLongLong(args[2], &jobs);
    int end = 3 + 2 * jobs;
    for (int at = end + 1; at < count; at++) StringToLongLong(args[at], &number);
    ReplyWithArray(ctx, jobs);
    for (int at = 3; at < end; at += 2) {
        push(queue, args[at], args[at + 1]);
        ReplyWithString(ctx, args[at]);
    }
    CloseKey(key);
    return ReplicateVerbatim(ctx);
}

/* key [COUNT number]: the lease is the job's number */
static int pop(Ctx *ctx, Str **args, int count) {
    Key *key;
    long long most = 1;
    Queue *queue = open_queue(ctx, args[1], &key);
    if (count > 3) StringToLongLong(args[3], &most);
    size_t left = queue->len - queue->next;
    if (left > (size_t)most) left = most;
    if (count > 3) ReplyWithArray(ctx, left);
    for (; left; left--) {
        Job *job = queue->jobs[queue->next];
        ReplyWithArray(ctx, 4);
        ReplyWithStringBuffer(ctx, job->bytes, job->id_len);
        ReplyWithStringBuffer(ctx, job->bytes + job->id_len, job->body_len);
        ReplyWithLongLong(ctx, queue->next++);
        ReplyWithLongLong(ctx, 1);
    }
    CloseKey(key);
    return ReplicateVerbatim(ctx);
}

/* key id lease [id lease ...] */
static int finish(Ctx *ctx, Str **args, int count) {
    Key *key;
    long long lease, finished = 0;
    Queue *queue = open_queue(ctx, args[1], &key);
    for (int at = 3; at < count; at += 2, finished++) {
        StringToLongLong(args[at], &lease);
        Free(queue->jobs[lease]);
        queue->jobs[lease] = NULL;
    }
    CloseKey(key);
    ReplicateVerbatim(ctx);
    return ReplyWithLongLong(ctx, finished);
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(Ctx *ctx) {
    int (*get)(const char *, void *) = (int (*)(const char *, void *))((void **)ctx)[0];
#define FIND(result, name, words) get("RedisModule_" #name, &name);
    API(FIND)
    SetModuleAttribs(ctx, "floor", 1, 1 /* of the API */);
    Methods methods = {.version = 1, .free = free_queue};
    type = CreateDataType(ctx, "dq--floor", 0, &methods);
    CreateCommand(ctx, "dq.add", add, "write deny-oom fast", 1, 1, 1);
    CreateCommand(ctx, "dq.madd", madd, "write deny-oom", 1, 1, 1);
    CreateCommand(ctx, "dq.pop", pop, "write fast", 1, 1, 1);
    CreateCommand(ctx, "dq.finish", finish, "write fast", 1, 1, 1);
    return 0;
}
