import { WordList } from './word-list.ts'

/* Messages of sites about errors, or actions required elsewhere, in the languages of `page-words.ts`. */

export const wrongCredentials = new WordList([
  "incorrect|invalid|wrong|not recognized|not recognised|doesn't match|does not match|didn't match|did not match|don't match|do not match|couldn't find|could not find|can't find|cannot find|not found|no account|unknown user|not valid|unable to log you in|login failed|sign-in failed|failed to log in|bad credentials|unable to sign|authentication failed|doesn't exist|does not exist|isn't right|is not correct|isn't correct|access denied for user|not registered|we don't recognize|denied|try again",
  'falsch|ungültig|stimmt nicht|stimmen nicht|nicht korrekt|inkorrekt|fehlgeschlagen|nicht gefunden|unbekannt|konnte nicht|nicht erkannt|nicht richtig|existiert nicht',
  "incorrecte|invalide|errone|ne correspond|introuvable|incorrectes|echec|echoue|inconnu|n'existe pas|mauvais|non valide|incorrects",
  'incorrecta|incorrecto|incorrectos|invalida|invalido|no coincide|no coinciden|no existe|erronea|erroneo|no encontramos|fallido|no es valida|no es valido|no es correcta',
  'incorreta|incorreto|incorretos|invalidos|nao confere|nao encontrada|nao encontrado|errada|nao existe|falhou|nao corresponde',
  'errata|errato|non valida|non valido|non corretta|non corretto|non corrispondono|credenziali non|non trovato|sbagliata|non esiste|errati',
  'onjuist|ongeldig|verkeerd|komt niet overeen|niet gevonden|mislukt|klopt niet|kloppen niet|niet correct',
  'nieprawidlow|nieprawidlowy|nieprawidlowe|nieprawidlowa|bledne|bledny|bledna|niepoprawne|niepoprawny|nie znaleziono|niewlasciwe|nie istnieje',
  'неверн|неверный|неверное|неверные|неправильный|неправильное|не найден|не совпада|ошибка входа|не существует|не удалось войти|неправильно',
  'hatali|yanlis|gecersiz|bulunamadi|eslesmiyor|basarisiz',
  '正しくありません|間違|無効|一致しません|違います|見つかりません|誤り|誤って|失敗',
  '错误|不正确|无效|不匹配|不存在|失败|錯誤|有误|無效|不正確',
  '올바르지|잘못|일치하지|틀렸|존재하지 않|실패',
  'غير صحيح|غير صحيحة|خاطئ|خاطئة|غير صالح|خطأ|لم يتم العثور',
  'שגוי|שגויה|לא נכון|אינו נכון|שגויים|לא תקין|אינה נכונה|לא נמצא',
])

export const expired = new WordList([
  'expired|session expired|session has expired|session timed out|has timed out|abgelaufen|a expire|expiree|expire|caducado|expirado|expirou|scaduta|scaduto|verlopen|wygasl|wygasla|истек|истекла|истекло|suresi doldu|期限切れ|期限が切れ|有効期限|过期|過期|失效|만료|انتهت صلاحية|انتهت|פג תוקף|פגה',
])

export const locked = new WordList([
  'account locked|account is locked|account has been locked|locked out|account suspended|account has been suspended|account is suspended|account disabled|account has been disabled|account is disabled|temporarily locked|account blocked|account has been blocked|been deactivated|account is blocked|has been locked',
  'konto gesperrt|konto wurde gesperrt|konto ist gesperrt|gesperrt|konto deaktiviert|vorübergehend gesperrt',
  'compte verrouille|compte bloque|compte est bloque|compte suspendu|compte desactive|a ete bloque|a ete verrouille|est verrouille',
  'cuenta bloqueada|cuenta suspendida|ha sido bloqueada|esta bloqueada|cuenta ha sido|bloqueado temporalmente',
  'conta bloqueada|conta suspensa|foi bloqueada|conta desativada|esta bloqueada',
  'account bloccato|e stato bloccato|account sospeso|account disattivato|bloccato',
  'account geblokkeerd|account is geblokkeerd|is vergrendeld|geblokkeerd|account opgeschort',
  'konto zablokowane|konto zostalo zablokowane|zablokowane|zawieszone',
  'аккаунт заблокирован|учетная запись заблокирована|заблокирован|заблокирована|временно заблокирован',
  'hesabiniz kilitlendi|hesap kilitlendi|hesabiniz askiya|hesabiniz engellendi|kilitlendi',
  'アカウントがロック|ロックされ|アカウントは停止|凍結',
  '账户已锁定|账号已锁定|帐户已锁定|账户被锁定|已被锁定|账号被封|帳戶已鎖定|已冻结|被锁定|已被停用',
  '계정이 잠|잠겼습니다|계정이 정지|잠겨',
  'تم قفل|تم حظر|حسابك مقفل|الحساب مقفل|تم تعليق|مغلق',
  'החשבון ננעל|החשבון נעול|נחסם|החשבון נחסם|נעול',
])

export const rateLimited = new WordList([
  'too many|too many attempts|too many requests|too many failed|rate limit|try again later|try again in|slow down|attempts exceeded|maximum number of attempts|temporarily blocked|wait a few minutes|wait before',
  'zu viele|später erneut|versuchen sie es später|zu oft|später noch einmal',
  'trop de tentatives|trop de|reessayez plus tard|reessayer plus tard|reessayez dans',
  'demasiados intentos|demasiadas|intentalo mas tarde|intente mas tarde|vuelve a intentarlo mas tarde',
  'muitas tentativas|tente novamente mais tarde|demasiadas tentativas|tentativas excedidas',
  'troppi tentativi|riprova piu tardi|troppe richieste',
  'te veel|te vaak|probeer het later|later opnieuw',
  'zbyt wiele|za duzo prob|sprobuj ponownie pozniej|sprobuj pozniej',
  'слишком много|повторите попытку позже|попробуйте позже|превышено|попробуйте снова через',
  'cok fazla|daha sonra tekrar|cok sayida',
  '回数が多|試行回数|しばらくして|しばらく経って|回数を超え|後でもう一度',
  '过于频繁|次数过多|稍后再试|太频繁|次數過多|请求过多|稍後再試',
  '너무 많|잠시 후 다시|횟수를 초과|나중에 다시',
  'محاولات كثيرة|عدد كبير|حاول مرة أخرى لاحقا|حاول لاحقا|المحاولات',
  'יותר מדי|נסה שוב מאוחר|נסו שוב מאוחר|מאוחר יותר',
])

export const botCheck = new WordList([
  'unusual traffic|automated queries|are you a robot|not a robot|are you human|verify you are human|verify that you are human|verifying you are human|checking your browser|checking if the site connection is secure|just a moment|access denied|access to this page has been denied|bot detection|automated access|request blocked|you have been blocked|press and hold|suspicious activity from your|pardon our interruption|browser is not supported|this browser or app may not be secure|security service to protect|enable javascript and cookies to continue',
  'ungewöhnlicher datenverkehr|bist du ein mensch|sind sie ein mensch|kein roboter|zugriff verweigert|trafic inhabituel|pas un robot|acces refuse|trafico inusual|no soy un robot|acceso denegado|nao sou um robo|trafego incomum|acesso negado|non sono un robot|traffico insolito|accesso negato|geen robot|toegang geweigerd|nie jestem robotem|odmowa dostepu|не робот|доступ запрещен|подозрительн|robot olmadiginizi|erisim engellendi',
  'ロボットではありません|アクセスが拒否|不審な|机器人|访问被拒绝|异常流量|機器人|로봇이 아닙니다|접근이 거부|비정상적인|لست روبوت|تم رفض الوصول|רובוט|הגישה נדחתה',
])

export const captchaWords = new WordList([
  'captcha|characters you see|characters in the image|characters in the picture|text in the image|letters in the image|letters you see|type the characters|what you see in the picture|security image|select all images|select all squares|puzzle|slide to verify|drag the slider|solve the|code from the image|code in the image|image code|human verification challenge',
  "zeichen im bild|buchstaben im bild|sicherheitsabfrage|bilderrätsel|sicherheitsbild|caracteres de l'image|code de l'image|caracteres de la imagen|codigo de la imagen|caracteres da imagem|caratteri dell'immagine|tekens in de afbeelding|znaki z obrazka|kod z obrazka|символы с картинки|код с картинки|символы на изображении|resimdeki|guvenlik resmi",
  '画像の文字|画像認証|画像に表示|图形验证码|图片验证码|圖形驗證碼|图中|滑动验证|拖动滑块|자동입력|이미지의 문자|보안문자|الصورة|الأحرف الظاهرة|האותיות בתמונה|התווים בתמונה',
])

/** An action on a device. */
export const deviceAction = new WordList([
  "check your phone|on your phone|on your mobile|on your device|open the app|open your app|in the app|in your app|approve the|approve this|approve sign|tap yes|tap approve|notification to|sent a notification|sent you a notification|push notification|sent a push|confirm on your|waiting for approval|waiting for you to|waiting for confirmation|use your security key|insert your security key|touch your security key|scan the qr|scan this qr|scan qr|qr code|approve your|respond to the|match the number|number shown|tap the number|authenticator app on your phone|verify using your device|we're calling|we are calling|answer the call",
  'prüfen sie ihr|auf ihrem handy|auf ihrem smartphone|auf deinem handy|auf deinem smartphone|auf ihrem gerät|öffnen sie die app|öffne die app|in der app|in ihrer app|benachrichtigung|bestätigen sie die anmeldung|qr-code|freigabe',
  "sur votre telephone|sur votre mobile|sur votre appareil|ouvrez l'application|dans l'application|notification|approuvez|code qr|validez la connexion",
  'en tu telefono|en su telefono|en tu movil|abre la aplicacion|en la aplicacion|notificacion|aprueba|codigo qr|en tu dispositivo|confirma en',
  'no seu telefone|no seu celular|no seu telemovel|abra o aplicativo|no aplicativo|notificacao|aprove|no seu dispositivo|na app',
  "sul tuo telefono|sul tuo dispositivo|apri l'app|nell'app|notifica|approva|codice qr|sul cellulare",
  'op je telefoon|op uw telefoon|open de app|in de app|melding|goedkeuren|op je apparaat|keur de',
  'na telefonie|na swoim telefonie|otworz aplikacje|w aplikacji|powiadomienie|zatwierdz|kod qr|na urzadzeniu',
  'на телефоне|на вашем телефоне|откройте приложение|в приложении|уведомление|подтвердите вход|qr-код|на устройстве',
  'telefonunuz|telefonunuzda|telefonunuzu|uygulamayi acin|uygulamada|bildirim|qr kod|cihazinizda|onaylayin',
  'スマートフォン|お使いのデバイス|アプリを開|アプリで|通知|qrコード|端末で|承認してください',
  '手机上|打开应用|打开手机|应用中|通知|二维码|扫码|在您的设备|手機上|扫描|二維碼|确认登录',
  '휴대폰에서|휴대전화에서|앱을 열|앱에서|알림|qr 코드|기기에서|승인',
  'على هاتفك|افتح التطبيق|في التطبيق|إشعار|رمز الاستجابة|على جهازك',
  'בטלפון שלך|בטלפון|פתח את האפליקציה|באפליקציה|התראה|קוד qr|במכשיר',
])

/** A link that was sent by e-mail. */
export const mailAction = new WordList([
  "check your email|check your inbox|check your mail|sent you an email|sent you a link|sent a link|sent an email|we emailed you|we've emailed|magic link|sign-in link|login link|click the link|follow the link|link in the email|link we sent|emailed a link|confirm your email|open the email",
  'prüfen sie ihre e-mails|prüfe deine e-mails|e-mail gesendet|link gesendet|klicken sie auf den link|klicke auf den link|anmeldelink|posteingang|link in der e-mail|e-mail geschickt',
  "consultez vos e-mails|verifiez votre boite|nous vous avons envoye|cliquez sur le lien|lien de connexion|verifiez vos e-mails|lien magique|lien dans l'e-mail",
  'revisa tu correo|revise su correo|te hemos enviado|haz clic en el enlace|enlace magico|enlace de inicio|hemos enviado un enlace|bandeja de entrada',
  'verifique seu e-mail|verifique o seu e-mail|enviamos um link|clique no link|link magico|enviamos um e-mail|caixa de entrada',
  'controlla la tua email|controlla la posta|ti abbiamo inviato|clicca sul link|link magico|link di accesso|abbiamo inviato',
  'controleer je e-mail|controleer uw e-mail|we hebben je een|klik op de link|inloglink|link gestuurd',
  'sprawdz skrzynke|sprawdz swoja|wyslalismy|kliknij link|link do logowania|kliknij w link',
  'проверьте почту|мы отправили|отправили ссылку|перейдите по ссылке|ссылка для входа|отправили письмо|ссылку в письме',
  'e-postanizi kontrol|size bir baglanti|baglantiya tiklayin|gonderdik|giris baglantisi',
  'メールを確認|メールを送信|リンクを送信|リンクをクリック|ログインリンク|メールをご確認',
  '查看您的邮件|查看邮箱|已发送|点击链接|登录链接|检查您的邮箱|查收|點擊連結|邮件中的链接',
  '이메일을 확인|링크를 보냈|링크를 클릭|메일을 확인|로그인 링크',
  'تحقق من بريدك|أرسلنا|انقر على الرابط|رابط تسجيل الدخول|اضغط على الرابط',
  'בדוק את|שלחנו לך|לחץ על הקישור|קישור התחברות|שלחנו אליך|בדקו את',
])

/** A page that is still loading. */
export const working = new WordList([
  'loading|please wait|signing in|signing you in|logging in|logging you in|redirecting|one moment|hang tight|processing|verifying',
  'wird geladen|bitte warten|sie werden angemeldet|weiterleitung|einen moment|chargement|veuillez patienter|connexion en cours|redirection|cargando|espere|espera un momento|redirigiendo|carregando|aguarde|redirecionando|caricamento|attendere|reindirizzamento|laden|even geduld|bezig met|ladowanie|prosze czekac|trwa logowanie|загрузка|подождите|перенаправление|yukleniyor|lutfen bekleyin|yonlendiriliyor',
  '読み込み中|お待ちください|リダイレクト|ログイン中|加载中|请稍候|正在登录|正在跳转|請稍候|로딩|잠시만|이동 중|جار التحميل|يرجى الانتظار|جاري|טוען|אנא המתן|המתינו',
])
